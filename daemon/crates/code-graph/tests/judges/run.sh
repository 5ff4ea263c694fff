#!/usr/bin/env bash
# Compares imports and references with peers: run.sh TREES PEERS [imports|references].
#
# TREES has checkouts named as below; they are copied before anything is written into them. PEERS is a
# working folder. It needs once:
#   python3 -m venv PEERS/py && PEERS/py/bin/pip install grimp werkzeug jinja2 click itsdangerous blinker
#   (cd PEERS && npm i typescript@5 typescript-language-server pyright)
#   apt-get install golang-go clangd gcc g++ cmake make default-jdk-headless ruby-sinatra; rustup component add rust-analyzer
set -euo pipefail
trees=$(realpath "$1") peers=$(realpath "$2") suite=${3:-imports}
here=$(realpath "$(dirname "$0")")
cd "$here/../.."
cargo build --quiet --release -p cairn-code-graph --examples
bin=${CARGO_TARGET_DIR:-../../../target}/release/examples
out=$peers/out
mkdir -p "$out" "$peers/trees" "$peers/stub/gtest"
touch "$peers/stub/curl_config.h" "$peers/stub/gtest/gtest.h"

copy() { rm -rf "$peers/trees/$1"; cp -r "$trees/$1" "$peers/trees/$1"; }
ours() { "$bin/edges" "$trees/$1" > "$out/$1.tsv"; }
compare() { python3 "$here/compare.py" "$1 ($2)" "$out/$1.peer" "$out/$1.tsv" "${@:3}" || true; }

imports() {
  printf '%-28s %6s %6s %9s %7s\n' tree peer ours precision recall
  for tree in flask paperless trpc axios etcd crush leveldb curl helix guice sinatra; do ours $tree; done
  "$peers/py/bin/python" "$here/python_imports.py" "$trees/flask" src flask > "$out/flask.peer"
  compare flask grimp
  "$peers/py/bin/python" "$here/python_imports.py" "$trees/paperless" src documents paperless paperless_ai \
    paperless_mail > "$out/paperless.peer"
  compare paperless grimp
  for tree in paperless trpc axios; do
    node "$here/script_imports.cjs" "$peers/node_modules" "$trees/$tree" > "$out/$tree.peer"
    compare $tree typescript
  done
  for tree in etcd crush; do
    copy $tree
    # An older Go reads neither new versions nor new directives.
    rm -f "$peers/trees/$tree/go.work"
    find "$peers/trees/$tree" -name go.mod -exec sed -i -E '/^toolchain/d; /^(tool|ignore|godebug) [^(]/d
      /^(tool|ignore|godebug) \(/,/^\)/d; s/^go 1\..*/go 1.19/' {} +
    python3 "$here/go_imports.py" "$peers/trees/$tree" > "$out/$tree.peer"
    compare $tree 'go list' --folders
  done
  python3 "$here/c_imports.py" "$trees/leveldb" g++ .cc,.h . include "$peers/stub" > "$out/leveldb.peer"
  compare leveldb 'g++ -E'
  python3 "$here/c_imports.py" "$trees/curl" gcc .c,.h include lib src tests tests/libtest tests/unit tests/server \
    tests/tunit "$peers/stub" > "$out/curl.peer"
  compare curl 'gcc -E'
  copy helix
  rm -f "$peers/trees/helix/rust-toolchain.toml"
  (cd "$peers/trees/helix" && env -u CARGO_TARGET_DIR rust-analyzer lsif . > "$out/helix.lsif" 2> "$out/helix.log")
  python3 "$here/rust_imports.py" "$peers/trees/helix" "$out/helix.lsif" > "$out/helix.peer"
  compare helix rust-analyzer
  java "$here/JavaImports.java" "$trees/guice" > "$out/guice.peer"
  compare guice javac
  ruby "$here/ruby_imports.rb" "$trees/sinatra" sinatra/base sinatra/main rack/protection sinatra/contrib \
    sinatra/contrib/all > "$out/sinatra.peer" 2> "$out/sinatra.log" || true
  # Constants lead to files that no require of the importer names.
  sed -i '/same-package$/d' "$out/sinatra.tsv"
  compare sinatra ruby
}

# TREE LANGUAGES PREFIX SERVER COMMAND...: 100 definitions of seed 1.
judge() {
  "$bin/references" "$trees/$1" "$2" "${COUNT:-100}" "${SEED:-1}" "$3" > "$out/$1.references"
  timeout 900 python3 "$here/references.py" "$1 ($4)" "$peers/trees/$1" "$out/$1.references" "${@:5}"
}

references() {
  local modules=$peers/node_modules
  export LSP_WAIT=12 LSP_OPTIONS='{}'
  for tree in flask paperless; do
    copy $tree
    sed -i '/^\[tool.pyright\]/,/^$/d' "$peers/trees/$tree/pyproject.toml"
    printf '{"venvPath": "%s", "venv": "py", "extraPaths": ["src"], "include": ["src", "tests", "examples"],
      "exclude": ["**/node_modules", "src-ui"]}' "$peers" > "$peers/trees/$tree/pyrightconfig.json"
    judge $tree python src/ pyright node "$modules/pyright/langserver.index.js" --stdio
  done
  export LSP_OPTIONS="{\"tsserver\": {\"path\": \"$modules/typescript/lib\", \"useSyntaxServer\": \"never\"}}"
  (cd "$peers/trees/paperless/src-ui" && npm i --ignore-scripts --legacy-peer-deps --no-audit --no-fund --omit=dev \
    > "$out/npm.log" 2>&1)
  LSP_WAIT=25 LSP_OPEN=src-ui/src/main.ts judge paperless typescript src-ui/src/ tsserver \
    "$modules/.bin/typescript-language-server" --stdio
  copy axios
  echo '{"compilerOptions": {"allowJs": true, "checkJs": true, "module": "esnext", "moduleResolution": "bundler",
    "target": "es2022", "noEmit": true}, "include": ["lib", "index.js", "test", "bin"]}' \
    > "$peers/trees/axios/tsconfig.json"
  LSP_OPEN=lib/axios.js judge axios javascript lib/ tsserver "$modules/.bin/typescript-language-server" --stdio
  copy helix
  rm -f "$peers/trees/helix/rust-toolchain.toml"
  export LSP_WAIT=60 LSP_OPTIONS='{"cargo": {"buildScripts": {"enable": false}}, "procMacro": {"enable": false},
    "checkOnSave": false, "cachePriming": {"enable": false}}'
  (unset CARGO_TARGET_DIR; judge helix rust helix- rust-analyzer rust-analyzer)
  copy leveldb
  python3 "$here/compile_commands.py" "$peers/trees/leveldb" "$peers/stub"
  copy curl
  (cd "$peers/trees/curl" && cmake -B build -DCURL_ENABLE_SSL=OFF -DCURL_USE_LIBPSL=OFF -DCURL_ZLIB=OFF -DBUILD_TESTING=OFF \
    -DCURL_DISABLE_LDAP=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON > "$out/cmake.log" 2>&1 &&
    cp build/compile_commands.json .)
  export LSP_WAIT=150 LSP_OPTIONS='{}'
  judge leveldb c,cpp '' clangd clangd --background-index
  LSP_ONLY='lib/ src/ include/' judge curl c lib/ clangd clangd --background-index
}

"$suite"
