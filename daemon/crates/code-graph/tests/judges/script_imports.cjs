// Prints the imports of the files of a tree as the TypeScript compiler resolves them: MODULES ROOT.
const path = require('path'), fs = require('fs');
const [modules, root] = process.argv.slice(2);
const ts = require(path.join(modules, 'typescript'));
const files = require('child_process').execSync(`git -C ${root} ls-files`, { encoding: 'utf8', maxBuffer: 1e9 })
  .split('\n').filter((f) => /\.([cm]?[jt]s|[jt]sx)$/.test(f));
const known = new Set(files), configs = new Map(), packages = new Map();
const manifests = require('child_process').execSync(`git -C ${root} ls-files '*package.json'`, { encoding: 'utf8' });
for (const file of manifests.split('\n').filter(Boolean)) {
  const { name } = JSON.parse(fs.readFileSync(path.join(root, file), 'utf8'));
  if (name) packages.set(name, path.dirname(file));
}
// A declaration stands for the script beside it.
const script = (file) => [file.replace(/\.d\.(.?)ts$/, '.$1js')].find((f) => known.has(f)) ?? file;

function options(folder) {
  if (configs.has(folder)) return configs.get(folder);
  let found = ['tsconfig.json', 'jsconfig.json'].map((n) => path.join(folder, n)).find((f) => fs.existsSync(f));
  let value;
  if (found) {
    const parsed = ts.parseJsonConfigFileContent(ts.readConfigFile(found, ts.sys.readFile).config, ts.sys, folder, undefined, found);
    value = parsed.options;
  } else if (folder.length <= root.length) value = {};
  else value = options(path.dirname(folder));
  configs.set(folder, value);
  return value;
}

for (const file of files) {
  const full = path.join(root, file), text = fs.readFileSync(full, 'utf8');
  console.log(`file\t${file}`);
  const info = ts.preProcessFile(text, true, true);
  const own = { ...options(path.dirname(full)), allowJs: true, resolveJsonModule: true };
  if (!own.moduleResolution) own.moduleResolution = ts.ModuleResolutionKind.Bundler;
  for (const { fileName } of [...info.importedFiles, ...info.referencedFiles]) {
    const { resolvedModule } = ts.resolveModuleName(fileName, full, own, ts.sys);
    const target = resolvedModule && path.relative(root, resolvedModule.resolvedFileName);
    if (target && known.has(target)) console.log(`edge\t${file}\t${script(target)}`);
    const name = fileName.split('/').slice(0, fileName[0] === '@' ? 2 : 1).join('/');
    // Nothing is installed or built, so the compiler cannot find packages of the tree by name.
    if (!target && packages.has(name)) console.log(`open\t${file}\t${packages.get(name)}`);
  }
}
