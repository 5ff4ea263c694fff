#!/bin/sh
# Installs Cairn @VERSION@ for one user, without root:
#   curl -fsSL @REPOSITORY@/releases/latest/download/install.sh | sh
# Files go below ~/.local, or below the folder of --prefix. Run again, it replaces what it installed.
# CAIRN_DOWNLOAD_BASE names another address, or a folder, with the archive and its .sha256 file.
set -eu

version="@VERSION@"
repository="@REPOSITORY@"
base="${CAIRN_DOWNLOAD_BASE:-$repository/releases/download/v$version}"
prefix=""
uninstall=""
temporary=""

say() { printf '%s\n' "$*"; }
fail() {
  printf 'install.sh: %s\n' "$*" >&2
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

usage() {
  say "usage: install.sh [--prefix DIR] [--uninstall]"
  say "  --prefix DIR  install below DIR instead of ~/.local (as root: /usr/local)"
  say "  --uninstall   stop the daemon and remove what this script installed; your data stays"
}

while [ $# -gt 0 ]; do
  case "$1" in
    --prefix)
      [ $# -gt 1 ] || fail "--prefix needs a folder"
      prefix="$2"
      shift
      ;;
    --prefix=*) prefix="${1#--prefix=}" ;;
    --uninstall) uninstall=yes ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      fail "unknown argument: $1"
      ;;
  esac
  shift
done

# For root, a folder in the PATH of every user.
if [ -z "$prefix" ] && [ "$(id -u)" = 0 ]; then
  prefix=/usr/local
fi
if [ -z "$prefix" ]; then
  [ -n "${HOME:-}" ] || fail "HOME is not set: set it, or name a folder with --prefix DIR"
  prefix="$HOME/.local"
fi
case "$prefix" in
  /*) ;;
  *) prefix="$PWD/$prefix" ;;
esac
# The list of installed files and created folders, relative to the prefix.
list="share/doc/cairn/installed-files"

cleanup() { [ -z "$temporary" ] || rm -rf "$temporary"; }
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Prints the processes that run the program below the prefix, or the one that it replaced.
daemons() {
  for process in /proc/[0-9]*; do
    case "$(readlink "$process/exe" 2>/dev/null)" in
      "$prefix/bin/cairn" | "$prefix/bin/cairn (deleted)") echo "${process#/proc/}" ;;
    esac
  done
}

stop_daemons() {
  "$prefix/bin/cairn" stop >/dev/null 2>&1 || true
  for signal in TERM KILL; do
    for pid in $(daemons); do
      kill -s "$signal" "$pid" 2>/dev/null || true
    done
    seconds=0
    while [ -n "$(daemons)" ] && [ "$seconds" -lt 20 ]; do
      sleep 1
      seconds=$((seconds + 1))
    done
  done
}

remove_installed() {
  [ -e "$prefix/$list" ] || fail "there is no Cairn of this script below $prefix; name its folder with --prefix DIR"
  [ -w "$prefix/bin" ] || fail "cannot write to $prefix/bin; run as its owner"
  if [ -n "${HOME:-}" ] && [ -x "$prefix/bin/cairn" ]; then
    "$prefix/bin/cairn" service uninstall >/dev/null 2>&1 || true
  fi
  stop_daemons
  cp "$prefix/$list" "$temporary/list"
  # Folders come last and deepest first; one that has other files stays.
  while IFS= read -r path; do
    case "$path" in
      */) rmdir "$prefix/$path" 2>/dev/null || true ;;
      *) rm -f "$prefix/$path" ;;
    esac
  done <"$temporary/list"
  say "removed Cairn from $prefix"
  data="${CAIRN_HOME:-${XDG_DATA_HOME:-${HOME:-~}/.local/share}/cairn}"
  [ ! -d "$data" ] || say "your data stays in $data; remove it with: rm -r '$data'"
}

if [ -n "$uninstall" ]; then
  temporary="$(mktemp -d)"
  remove_installed
  exit 0
fi

platform() {
  system="$(uname -s)"
  machine="$(uname -m)"
  case "$system" in
    Linux) system=linux ;;
    Darwin) system=macos ;;
    *) fail "there is no package for $system, only for Linux and macOS; build from source: $repository" ;;
  esac
  case "$machine" in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "there is no package for the architecture $machine, only for x86_64 and aarch64; build from source: $repository" ;;
  esac
  if [ "$system" = linux ] && ! getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
    for loader in /lib/ld-musl-*; do
      [ -e "$loader" ] || continue
      fail "this system uses musl; the packages need glibc 2.17 or newer. Build from source: $repository"
    done
  fi
  say "$machine-$system"
}

# fetch NAME: copies or downloads a file of the release into the temporary folder.
fetch() {
  case "$base" in
    http://* | https://*)
      if has curl; then
        curl -fsSL --retry 2 -o "$temporary/$1" "$base/$1" || fail "cannot download $base/$1"
      elif has wget; then
        wget -q -O "$temporary/$1" "$base/$1" || fail "cannot download $base/$1"
      else
        fail "neither curl nor wget is installed"
      fi
      ;;
    *) cp "${base#file://}/$1" "$temporary/$1" || fail "cannot read ${base#file://}/$1" ;;
  esac
}

sum_of() {
  if has sha256sum; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif has shasum; then
    shasum -a 256 "$1" | cut -d ' ' -f 1
  elif has openssl; then
    openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
  else
    fail "neither sha256sum, shasum nor openssl is installed: the download cannot be checked"
  fi
}

platform="$(platform)"
# Found out before anything is downloaded.
if [ -e "$prefix/bin/cairn" ] && [ ! -e "$prefix/$list" ]; then
  fail "$prefix/bin/cairn was not installed by this script: remove it, or name another folder with --prefix DIR"
fi
existing="$prefix"
while [ ! -e "$existing" ]; do existing="$(dirname "$existing")"; done
if [ ! -d "$existing" ] || ! ([ -w "$existing" ] && : >"$existing/.cairn-$$") 2>/dev/null; then
  fail "cannot write to $existing: name another folder with --prefix DIR"
fi
rm -f "$existing/.cairn-$$"

temporary="$(mktemp -d)"
name="cairn-$version-$platform"
fetch "$name.tar.gz"
fetch "$name.tar.gz.sha256"
expected="$(cut -d ' ' -f 1 <"$temporary/$name.tar.gz.sha256")"
[ "$(sum_of "$temporary/$name.tar.gz")" = "$expected" ] || fail "the checksum of $name.tar.gz is wrong: nothing was installed"
tar -xzf "$temporary/$name.tar.gz" -C "$temporary" || fail "cannot unpack $name.tar.gz"
if ! "$temporary/$name/bin/cairn" --version >"$temporary/version" 2>&1; then
  fail "the program does not run on this system: $(head -n 1 "$temporary/version")"
fi

# Folders that this script creates, so that removing it leaves none behind; an earlier run recorded its own.
created() {
  missing="$1"
  while [ "$missing" != . ] && [ ! -d "$prefix/$missing" ]; do
    echo "$missing/"
    missing="$(dirname "$missing")"
  done
}
had_older=""
: >"$temporary/files"
: >"$temporary/folders"
if [ -e "$prefix/$list" ]; then
  had_older=yes
  grep '/$' "$prefix/$list" >"$temporary/folders" || true
fi
(cd "$temporary/$name" && find . -type f | sed 's|^\./||' | sort) >"$temporary/new"
echo "$list" >>"$temporary/new"
while IFS= read -r path; do
  folder="$(dirname "$path")"
  created "$folder" >>"$temporary/folders"
  (umask 022 && mkdir -p "$prefix/$folder") || fail "cannot create $prefix/$folder"
  [ "$path" != "$list" ] || continue
  mode=644
  case "$path" in bin/*) mode=755 ;; esac
  # Renamed into place: a program that runs keeps its own file.
  if ! { cp "$temporary/$name/$path" "$prefix/$path.new-$$" && chmod "$mode" "$prefix/$path.new-$$" \
    && mv -f "$prefix/$path.new-$$" "$prefix/$path"; }; then
    rm -f "$prefix/$path.new-$$"
    fail "cannot write $prefix/$path"
  fi
done <"$temporary/new"
# Files of an older version that this one does not have.
if [ -n "$had_older" ]; then
  grep -v '/$' "$prefix/$list" | while IFS= read -r path; do
    grep -qxF "$path" "$temporary/new" || rm -f "${prefix:?}/$path"
  done
fi
{
  cat "$temporary/new"
  sort -ru "$temporary/folders"
} >"$prefix/$list.new-$$"
chmod 644 "$prefix/$list.new-$$"
mv -f "$prefix/$list.new-$$" "$prefix/$list"

say "installed $(cat "$temporary/version") in $prefix/bin"
if [ -n "$had_older" ] && [ -n "$(daemons)" ]; then
  say "a running daemon continues with the older program until 'cairn stop' or until it is idle"
fi
case ":${PATH:-}:" in
  *":$prefix/bin:"*)
    other="$(command -v cairn || true)"
    [ "$other" = "$prefix/bin/cairn" ] || say "another program comes first in your PATH: $other"
    ;;
  *) say "add it to your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
say "begin in a repository with: cairn explore ."
say "remove it with: sh install.sh --uninstall$([ "$prefix" = "${HOME:-}/.local" ] || printf ' --prefix %s' "'$prefix'")"
