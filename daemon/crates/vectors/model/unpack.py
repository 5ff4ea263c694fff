#!/usr/bin/env python3
"""Unpacks downloaded packages for mining: source files only, permissive licences only.

    unpack.py FOLDER KIND...

FOLDER/pypi/*.whl, npm/*.tgz, crates/*/ (as `cargo vendor` leaves them), deb/*.deb, debsrc/*.dsc become FOLDER/x/<kind>__<name>__<version>/;
FOLDER/unpacked.json tells the licence of each package and whether it was taken. A Debian package's copyright file is asked for each file.
Packages of what retrieval is evaluated on (HELD) are never taken. A checkout of a repository put beside them as repo__<owner>.<name>__<commit> is
measured on with `--without repo`, never learnt from."""
import sys, os, re, io, json, tarfile, zipfile, subprocess, fnmatch, glob, email.parser, lzma, gzip, shutil
S = sys.argv[1]
EXT = tuple(".rs .py .js .mjs .cjs .jsx .ts .tsx .mts .go .c .h .cc .cpp .cxx .hpp .hh .hxx .java .rb .swift .cs .php .sh .bash .lua .inc .bats".split())
HELD = re.compile(r"^(flask|express|sinatra|ripgrep|grep|globset|ignore|tokio|fastapi|gin|prometheus|redis|hiredis|vite|vitest|gson|rails|railties|action(pack|view|cable|mailer|text)|active(support|record|model|job|storage)|kubernetes|k8s|kube|client-go|postgres|postgresql|nginx|svelte|guava|netty|jekyll|httpie|caddy|terraform|git|requests|click|cobra|clap|okhttp|okio|curl|bbolt|bolt|lodash|thor|serde|leveldb|axios|jsoup|junit|junit4|libuv|libuv1)$")
def held(name):
    n = name.lower()
    n = re.sub(r"^golang-(github-|gopkg-|google-|golang-)?", "", n)
    toks = [t for t in re.split(r"[^a-z0-9]+", re.sub(r"^(ruby|php|lua|lib|python3?)-", "", n)) if t]
    if not toks: return False
    if "spf13" in toks and "cobra" in toks: return True
    return bool(HELD.match(toks[0])) or any(t in ("prometheus", "kubernetes", "k8s", "redis", "terraform", "flask", "sinatra", "rails", "okhttp", "lodash", "curl", "nginx", "svelte", "gin", "caddy", "bbolt", "leveldb", "goleveldb", "libgit2", "serde") for t in toks)
OK = re.compile(r"^(mit|mit-0|expat|apache|apache-2(\.0)?|apache 2(\.0)?|apache license.*|apache software license.*|bsd.*|0bsd|isc.*|zlib|unlicense|mit license|the mit license.*|mit-style|mit-like|new bsd.*|modified bsd.*|3-clause bsd.*|x11|mit/x11.*|isc-style|bsd-style|zlib/libpng|apache-2\.0 with llvm-exception|apache-2\.0-with-llvm-exception)$", re.I)
def permissive(expr):
    if not expr: return False
    e = expr.strip().strip("()").replace("/", " OR ").replace(",", " AND ") if not re.search(r"mit/x11|zlib/libpng", expr, re.I) else expr
    if re.search(r"\band\b.*(unicode|ncsa)", e, re.I): return False
    if re.search(r"\bgpl|agpl|lgpl|mpl|epl\b|cddl", e, re.I) and not re.search(r"\bor\b", e, re.I): return False
    alts = re.split(r"\s+or\s+", e, flags=re.I)
    return any(all(OK.match(p.strip(" ()")) for p in re.split(r"\s+and\s+", a, flags=re.I)) for a in alts)
def dest(eco, name, version):
    return f"{S}/x/{eco}__{re.sub(r'[^A-Za-z0-9.+-]', '.', name.strip('@'))}__{version}"
def put(d, rel, data):
    if len(data) > 400_000 or not data: return
    p = os.path.normpath(os.path.join(d, rel))
    if not p.startswith(d + "/"): return
    os.makedirs(os.path.dirname(p), exist_ok=True)
    try: open(p, "wb").write(data)
    except OSError: pass
log = {}
logfile = S + "/unpacked.json"
if os.path.exists(logfile): log = json.load(open(logfile))
def done(eco, name, version, lic, ok): 
    log[f"{eco}__{name}__{version}"] = [lic, ok]
def tar_members(t):
    for m in t:
        if m.isfile() and m.name.lower().endswith(EXT) and m.size < 400_000:
            f = t.extractfile(m)
            if f: yield m.name, f.read()
def dep5(text):
    """[(globs, licence)] of a machine-readable copyright file, or None."""
    if not re.match(r"\s*Format(-Specification)?:", text): return None
    out = []
    for st in re.split(r"\n\s*\n", text):
        f = re.search(r"^Files:\s*((?:.*)(?:\n[ \t]+.*)*)", st, re.M | re.I); l = re.search(r"^License:\s*(.*)", st, re.M | re.I)
        if f and l: out.append((f.group(1).replace(",", " ").split(), l.group(1).strip()))
    return out
def deblic(text):
    d = dep5(text)
    if d is not None:
        star = [l for g, l in d if "*" in g or "./*" in g]
        lic = star[0] if star else (d[0][1] if d and not any(True for g, l in d if 0) else "")
        return lic, ok_deb(lic), [(g, l) for g, l in d]
    low = text.lower()
    bad = re.search(r"general public license|mozilla public|lesser general", low)
    for k, v in (("apache license, version 2", "Apache-2.0"), ("apache license", "Apache-2.0"), ("permission is hereby granted, free of charge", "MIT"), ("redistribution and use in source and binary forms", "BSD"), ("permission to use, copy, modify, and", "ISC"), ("this software is provided 'as-is'", "Zlib")):
        if k in low: return v + (" (with GPL text)" if bad else ""), not bad, []
    return "?", False, []
def ok_deb(l):
    l = re.sub(r"^(Expat|MIT)[-~ ].*", "MIT", l); 
    l = re.sub(r"\bBSD-?\w*(-clause)?\b[-\w.~+]*", "BSD", l, flags=re.I)
    l = re.sub(r"\bApache-?v?2?(\.0)?\+?\b[\w.]*", "Apache-2.0", l, flags=re.I)
    l = l.replace("ASL-2.0", "Apache-2.0").replace("ASL-2", "Apache-2.0")
    return permissive(l)
def filtered(globs, rel):
    """Whether the last matching stanza of a copyright file is permissive (or none matches)."""
    verdict = True
    for gs, l in globs:
        if any(fnmatch.fnmatchcase(rel, g.lstrip("./") if g != "*" else g) for g in gs): verdict = ok_deb(l)
    return verdict
def pypi(f):
    b = os.path.basename(f); name, version = b.split("-")[:2]
    key = f"pypi__{name}__{version}"
    if key in log: return
    if held(name): return done("pypi", name, version, "held", False)
    z = zipfile.ZipFile(f); meta = next((n for n in z.namelist() if n.endswith(".dist-info/METADATA")), None)
    h = email.parser.Parser().parsestr(z.read(meta).decode("utf8", "replace"), headersonly=True)
    cl = [c.split("::")[-1].strip() for c in h.get_all("Classifier", []) if c.startswith("License ::")]
    lic = h.get("License-Expression") or " AND ".join(cl) or (h.get("License") or "").split("\n")[0]
    norm = lic.replace(" License", "").replace("OSI Approved", "").replace("Apache Software", "Apache-2.0").replace("ISC (ISCL)", "ISC").replace("The Unlicense (Unlicense)", "Unlicense")
    ok = permissive(norm.strip()) or permissive(lic)
    done("pypi", name, version, lic[:60], ok)
    if ok:
        d = dest("pypi", name, version)
        for n in z.namelist():
            if n.lower().endswith(EXT): put(d, n, z.read(n))
def npm(f):
    t = tarfile.open(f, errorlevel=0); files = {}; pj = None
    for m in t:
        if m.isfile() and re.fullmatch(r"[^/]+/package\.json", m.name): pj = json.loads(t.extractfile(m).read())
        elif m.isfile() and m.name.lower().endswith(EXT) and m.size < 400_000: files[m.name] = t.extractfile(m).read()
    name, version = pj["name"], pj["version"]; key = f"npm__{name}__{version}"
    if key in log: return
    lic = pj.get("license") or ""; lic = lic if isinstance(lic, str) else lic.get("type", "")
    if not lic and pj.get("licenses"): lic = pj["licenses"][0].get("type", "") if isinstance(pj["licenses"], list) else ""
    ok = permissive(lic) and not held(name)
    done("npm", name, version, lic if not held(name) else "held", ok)
    if ok:
        d = dest("npm", name, version)
        # sources first: what is built from them is a copy
        has_src = sum(n.split("/", 1)[1].startswith(("src/", "lib/", "source/", "ts/", "packages/")) for n in files) > 3
        for n, data in files.items():
            rel = n.split("/", 1)[1]
            if has_src and re.match(r"(dist|build|umd|cjs|esm|es|_?bundles?|fesm\w*|legacy|compiled|out)/", rel): continue
            put(d, rel, data)
def crate(d0):
    try: text = open(d0 + "/Cargo.toml").read()
    except OSError: return
    g = lambda k: (re.search(rf'^{k} = "(.*)"', text, re.M) or [None, ""])[1]
    name, version, lic = g("name"), g("version"), g("license"); key = f"crate__{name}__{version}"
    if key in log: return
    skip = held(name) or re.match(r"(windows|winapi|web-sys|objc2|icu_.*_data|libgit2-sys|libsqlite3-sys|curl|openssl-src|tree-sitter|webkit|linux-raw|.*-sys-bindings|ash|khronos|cranelift-assembler|glow|gl_generator)", name)
    ok = permissive(lic) and not skip
    done("crate", name, version, lic if not skip else "held or generated", ok)
    if ok:
        d = dest("crate", name, version)
        for root, dirs, fs in os.walk(d0):
            for f in fs:
                if f.lower().endswith(EXT):
                    p = os.path.join(root, f); put(d, os.path.relpath(p, d0), open(p, "rb").read())
def deb(f):
    b = os.path.basename(f); name, version = b.split("_")[:2]; key = f"deb__{name}__{version}"
    if key in log: return
    if held(name): return done("deb", name, version, "held", False)
    raw = subprocess.run(["dpkg-deb", "--fsys-tarfile", f], capture_output=True).stdout
    t = tarfile.open(fileobj=io.BytesIO(raw)); files = {}; cp = None
    for m in t:
        if re.fullmatch(r"\./usr/share/doc/[^/]+/copyright(\.gz)?", m.name) and m.isfile():
            cp = t.extractfile(m).read(); cp = gzip.decompress(cp) if m.name.endswith(".gz") else cp
        elif m.isfile() and m.name.lower().endswith(EXT) and m.size < 400_000: files[m.name[2:]] = t.extractfile(m).read()
    lic, ok, globs = deblic((cp or b"").decode("utf8", "replace"))
    if name in ("libruby3.1", "golang-1.19-src"): ok, lic, globs = True, "BSD-2-Clause (dual)" if "ruby" in name else "BSD-3-Clause", []
    done("deb", name, version, lic, ok)
    if ok:
        d = dest("deb", name, version)
        for n, data in files.items():
            rel = re.sub(r"^usr/share/(gocode/src/|go-[\d.]+/src/|rubygems-integration/all/gems/|php/|lua/5\.\d/|)|^usr/lib/ruby/(vendor_ruby|gems|\d[\d.]*)/", "", n)
            if not re.search(r"cobra/|bbolt/|k8s\.io/|prometheus/", rel): put(d, rel, data)
def debsrc(dsc):
    text = open(dsc, errors="replace").read()
    name = re.search(r"^Source: (.*)", text, re.M)[1]; version = re.search(r"^Version: (.*)", text, re.M)[1]
    key = f"src__{name}__{version}"
    if key in log: return
    if held(name): return done("src", name, version, "held", False)
    fs = [l.split()[2] for l in text.split("Files:")[1].split("\n\n")[0].split("\n") if len(l.split()) == 3]
    base = os.path.dirname(dsc); cp = b""
    tars = [base + "/" + f for f in fs if re.search(r"\.(tar\.(gz|xz|bz2)|tgz)$", f)]
    for f in tars:
        if ".debian.tar" in f:
            for m in tarfile.open(f):
                if m.name.lstrip("./") == "debian/copyright" and m.isfile(): cp = tarfile.open(f).extractfile(m.name).read()
    lic, ok, globs = deblic(cp.decode("utf8", "replace"))
    done("src", name, version, lic, ok)
    if ok:
        d = dest("src", name, version)
        for f in tars:
            if ".debian.tar" in f: continue
            comp = (re.search(r"\.orig-([\w-]+)\.tar", f) or [None, ""])[1]
            for n, data in tar_members(tarfile.open(f)):
                rel = n.lstrip("./").split("/", 1)[-1] if "/" in n.lstrip("./") else n
                if comp: rel = comp + "/" + rel
                if filtered(globs, rel): put(d, rel, data)
def each(fn, items):
    for i in items:
        try: fn(i)
        except Exception as e: print("skip", i, repr(e)[:100], flush=True)
what = sys.argv[2:]
if "pypi" in what: each(pypi, sorted(glob.glob(S + "/pypi/*.whl")))
if "npm" in what: each(npm, sorted(glob.glob(S + "/npm/*.tgz")))
if "crates" in what: each(crate, sorted(glob.glob(S + "/crates/*")))
if "deb" in what: each(deb, sorted(glob.glob(S + "/deb/*.deb")))
if "debsrc" in what: each(debsrc, sorted(glob.glob(S + "/debsrc/*.dsc")))
json.dump(log, open(logfile, "w"))
import collections
print(collections.Counter((k.split("__")[0], v[1]) for k, v in log.items()))
