#!/usr/bin/env bash
# Installs each package that `cargo xtask dist` builds in a clean system, runs the first minute, upgrades under a running daemon, removes
# it, and looks for what was left behind. Then the misuse that the packages have to refuse. Needs root on a Debian with debootstrap,
# rpm, iproute2, minisign, npm, python3 with venv; everything runs in namespaces without a network.
#
#   tests/packages/run.sh --old DIR --new DIR [--suite bookworm] [--only deb,rpm,tar,update,wheel,npm,python,typescript,misuse] [--work DIR]
#
# DIR are out folders of `cargo xtask dist` for two versions (`--package-version`).
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
project="$(cd "$here/../.." && pwd)"
suite=bookworm
only=deb,rpm,tar,update,wheel,npm,python,typescript,misuse
work="$project/target/dist-test"
old="" new=""
while [ $# -gt 0 ]; do
  case "$1" in
    --old) old="$(realpath "$2")" ;;
    --new) new="$(realpath "$2")" ;;
    --suite) suite="$2" ;;
    --only) only="$2" ;;
    --work) work="$(realpath -m "$2")" ;;
    *)
      echo "unknown argument: $1" >&2
      exit 2
      ;;
  esac
  shift 2
done
[ -n "$old" ] && [ -n "$new" ] || {
  echo "--old DIR and --new DIR are needed" >&2
  exit 2
}
[ "$(id -u)" = 0 ] || {
  echo "this needs root, for clean systems in namespaces" >&2
  exit 2
}

mkdir -p "$work/roots"
# A clean system, made once and used below an overlay.
if [ ! -e "$work/roots/$suite/.complete" ]; then
  rm -rf "$work/roots/$suite"
  # Nothing else, except AppArmor where it knows the rule for which the package has a profile.
  include=""
  case "$suite" in
    stretch | buster | bullseye | bookworm) ;;
    *) include="--include=apparmor" ;;
  esac
  debootstrap --variant=minbase $include "$suite" "$work/roots/$suite" >"$work/debootstrap.log" 2>&1
  chroot "$work/roots/$suite" useradd --create-home --shell /bin/sh tester
  cp -r "$project/tests/it/fixtures/sample" "$work/roots/$suite/home/tester/project"
  chroot "$work/roots/$suite" chown -R tester:tester /home/tester
  touch "$work/roots/$suite/.complete"
fi
# Tools that come from a registry, before the network is gone.
if [ ! -x "$work/tools/bin/uvx" ]; then
  python3 -m venv "$work/tools"
  "$work/tools/bin/pip" install --quiet uv
fi
mkdir -p "$work/wheels"
"$work/tools/bin/pip" download --quiet --dest "$work/wheels" 'websockets>=15'
npm_cache="$work/npm-cache"
npm cache add --cache "$npm_cache" ws@8 >/dev/null 2>&1

# A system of musl and busybox, for the misuse.
for name in busybox-static musl; do
  [ -e "$work/$name.deb" ] || (cd "$work" && apt-get download -qq "$name" >/dev/null 2>&1 && mv "$name"_*.deb "$name.deb")
done

# The newer release once more, signed with a key of this run.
case ",$only," in
  *,update,*)
    rm -rf "$work/signed"
    mkdir -p "$work/signed"
    cp "$new"/cairn-[0-9]*-linux.tar.gz "$new/install.sh" "$new/manifest.json" "$work/signed"
    (cd "$work" && rm -f release.key && minisign -G -W -f -p signed/release.pub -s release.key >/dev/null)
    minisign -S -s "$work/release.key" -m "$work/signed/manifest.json" >/dev/null
    ;;
esac

export old new work suite project npm_cache
failed=0
passed=0
printf '%-11s %9s %8s  %-44s %s\n' package MB seconds upgrade removal
for package in ${only//,/ }; do
  [ "$package" != misuse ] || continue
  if package="$package" unshare --mount --net --pid --uts --fork --kill-child bash "$here/one.sh" >"$work/$package.log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "$package: FAILED, see $work/$package.log"
    tail -n 5 "$work/$package.log"
  fi
  grep '^ROW' "$work/$package.log" | cut -d ' ' -f 2- || true
done
case ",$only," in
  *,misuse,*)
    unshare --mount --net --pid --uts --fork --kill-child bash "$here/misuse.sh" 2>"$work/misuse.log" | tee "$work/misuse.out"
    passed=$((passed + $(grep -c '^ok' "$work/misuse.out" || true)))
    failed=$((failed + $(grep -c '^FAILED' "$work/misuse.out" || true)))
    grep -q '^misuse: done' "$work/misuse.out" || failed=$((failed + 1))
    ;;
esac
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
