#!/usr/bin/env bash
# Misuse that the packages refuse, or stand. Called by run.sh in new namespaces, with its variables.
set -uo pipefail
. "$(dirname "$0")/system.sh"

# expect NAME PATTERN COMMAND...: the command fails, and what it prints matches.
expect() {
  local name="$1" pattern="$2" text
  shift 2
  if text="$("$@" 2>&1)"; then
    echo "FAILED $name: it succeeded: $text"
  elif grep -qE -- "$pattern" <<<"$text"; then
    echo "ok     $name: $(grep -E -- "$pattern" <<<"$text" | head -n 1)"
  else
    echo "FAILED $name: $text"
  fi
}
# works NAME PATTERN COMMAND...: the command succeeds, and what it prints matches.
works() {
  local name="$1" pattern="$2" text
  shift 2
  if text="$("$@" 2>&1)" && grep -qE -- "$pattern" <<<"$text"; then
    echo "ok     $name: $(grep -E -- "$pattern" <<<"$text" | head -n 1)"
  else
    echo "FAILED $name: $text"
  fi
}

fresh_root misuse
script="sh /packages-old/install.sh"
from="env CAIRN_DOWNLOAD_BASE=/packages-old"
expect "no HOME" "HOME is not set" as_user env -u HOME $from $script
works "no HOME, a prefix" "installed cairn" as_user env -u HOME $from $script --prefix /tmp/no-home
as_user sh /packages-old/install.sh --prefix /tmp/no-home --uninstall >/dev/null
mount --bind "$root/home/tester" "$root/home/tester"
mount -o remount,bind,ro "$root/home/tester"
expect "read-only home" "cannot write to /home/tester: name another folder" as_user $from $script
umount "$root/home/tester"
expect "home of another user" "cannot write to /root" as_user env HOME=/root $from $script

mkdir -p "$root/opt/fake"
printf '#!/bin/sh\ncase "$1" in -m) echo riscv64 ;; *) echo Linux ;; esac\n' >"$root/opt/fake/uname"
chmod +x "$root/opt/fake/uname"
expect "an architecture without a package" "no package for the architecture riscv64" as_user env PATH=/opt/fake:/usr/bin:/bin $from $script
expect "no such address" "cannot read /nowhere" as_user env CAIRN_DOWNLOAD_BASE=/nowhere $script
expect "no network" "cannot download|neither curl nor wget" as_user $script
mkdir "$root/opt/changed"
cp "$old"/cairn-[0-9]*-linux.tar.gz* "$root/opt/changed/"
printf 'x' >>"$(echo "$root"/opt/changed/*.tar.gz)"
expect "a changed archive" "checksum of .* is wrong: nothing was installed" as_user env CAIRN_DOWNLOAD_BASE=/opt/changed $script
as_user mkdir -p /home/tester/.local/bin
as_user touch /home/tester/.local/bin/cairn
expect "a program of the user's own" "was not installed by this script" as_user $from $script
as_user rm -r /home/tester/.local

works "install as a user" "installed cairn" as_user $from $script
before="$(find "$root/home/tester/.local" | sort)"
works "install again" "installed cairn" as_user $from $script
[ "$before" = "$(find "$root/home/tester/.local" | sort)" ] && echo "ok     install again: the same files" || echo "FAILED install again: other files"
works "first minute" "Python" as_user cairn explore /home/tester/project
works "install over a running older daemon" "running daemon continues with the older program" as_user env CAIRN_DOWNLOAD_BASE=/packages-new sh /packages-new/install.sh
works "a newer client with it" "." as_user cairn status
works "remove under a running daemon" "removed Cairn from /home/tester/.local" as_user sh /packages-new/install.sh --uninstall
[ -z "$(daemons)" ] && echo "ok     remove under a running daemon: no process" || echo "FAILED a process is left"
expect "remove twice" "there is no Cairn of this script" as_user sh /packages-new/install.sh --uninstall
as_user rm -rf /home/tester/.local

# As root for all users.
works "install as root" "in /usr/local/bin" in_root $from $script
works "run as a user" "Python" as_user cairn explore /home/tester/project
works "remove as root" "removed Cairn from /usr/local" in_root sh /packages-old/install.sh --uninstall
[ -z "$(daemons)" ] && echo "ok     remove as root: the user's daemon is stopped" || echo "FAILED a process is left"
as_user rm -rf /home/tester/.local

# A disk that has room for one program, not for the second one beside it.
as_user mkdir /home/tester/small
size=$(($(stat -c %s "$work/../dist-work/x86_64-linux/bin/cairn" 2>/dev/null || tar -tvzf "$(echo "$old"/cairn-[0-9]*-linux.tar.gz)" | awk '$6 ~ "bin/cairn$" { print $3 }') * 3 / 2))
mount -t tmpfs -o "size=$size,mode=777" tmpfs "$root/home/tester/small"
works "a small disk" "installed cairn" as_user $from $script --prefix /home/tester/small
expect "a full disk during an upgrade" "cannot write /home/tester/small" as_user env CAIRN_DOWNLOAD_BASE=/packages-new sh /packages-new/install.sh --prefix /home/tester/small
works "the older program after it" "cairn [0-9]" as_user /home/tester/small/bin/cairn --version
[ -z "$(find "$root/home/tester/small" -name '*.new-*')" ] && echo "ok     a full disk: no partial file" || echo "FAILED a partial file is left"
umount "$root/home/tester/small"

# A system with musl and busybox alone.
musl="$work/musl"
if [ ! -x "$musl/bin/busybox" ]; then
  mkdir -p "$musl/bin" "$musl/tmp" "$musl/home" "$musl/packages-old"
  for name in busybox-static musl; do dpkg -x "$work/$name.deb" "$musl" 2>/dev/null || true; done
  [ -e "$musl/lib/ld-musl-x86_64.so.1" ] || cp -a "$musl"/usr/lib/ld-musl* "$musl/lib/" 2>/dev/null || true
  for name in sh uname id cp tar gzip sha256sum cut mktemp rm mkdir ls env head dirname; do ln -sf busybox "$musl/bin/$name"; done
fi
mount --bind "$old" "$musl/packages-old"
expect "install.sh on musl" "this system uses musl" chroot "$musl" /bin/env -i PATH=/bin HOME=/home CAIRN_DOWNLOAD_BASE=/packages-old sh /packages-old/install.sh

# pip where no wheel fits takes the source archive, which names the reason.
python3 -m venv "$work/venv-musl"
mkdir -p "$work/sdist"
cp "$old"/cairn_agent-*.tar.gz "$work/sdist/"
expect "pip without a fitting wheel" "There is no cairn-agent package for this platform" \
  "$work/venv-musl/bin/pip" install --no-index --find-links "$work/sdist" cairn-agent
expect "a wheel file on musl" "not a supported wheel|No matching distribution" \
  "$work/venv-musl/bin/pip" install --no-index --target "$work/never" --platform musllinux_1_2_x86_64 --only-binary=:all: "$(echo "$old"/cairn_agent-*.whl)"

# The command of npm on other platforms: what the platform says of itself is replaced.
shim="$project/packaging/npm/cairn.cjs"
printf 'Object.defineProperty(process, "arch", { value: "riscv64" });' >"$work/arch.cjs"
printf 'process.report.getReport = () => ({ header: {} });' >"$work/no-glibc.cjs"
expect "npm on another architecture" "no package for linux-riscv64" node -r "$work/arch.cjs" "$shim" --version
expect "npm on musl" "no package for musl" node -r "$work/no-glibc.cjs" "$shim" --version
expect "npm without its platform package" "cairn-agent-linux-.* is missing" node "$shim" --version

# By the network: a server on this system's own loopback interface.
python3 -m http.server --bind 127.0.0.1 --directory "$old" 8099 >/dev/null 2>&1 &
server=$!
sleep 1
home="$(mktemp -d)"
piped() { env -i PATH="$1" HOME="$home" CAIRN_DOWNLOAD_BASE=http://127.0.0.1:8099 sh -c "$2 http://127.0.0.1:8099/install.sh | sh -s -- --prefix $home/.local"; }
works "curl | sh" "installed cairn" piped /usr/bin:/bin "curl -fsSL"
mkdir "$home/bin"
for program in /usr/bin/* /bin/*; do ln -s "$program" "$home/bin/" 2>/dev/null; done
rm "$home/bin/curl"
works "wget | sh" "installed cairn" piped "$home/bin" "wget -qO-"
works "remove after it" "removed Cairn" env HOME="$home" sh "$old/install.sh" --prefix "$home/.local" --uninstall
[ -z "$(ls -A "$home/.local" 2>/dev/null)" ] && echo "ok     remove after it: an empty folder" || echo "FAILED files are left: $(find "$home/.local")"
kill "$server"
rm -rf "$home"

# uv runs the wheel without installing it.
works "uvx" "cairn [0-9]" env HOME="$work/uv-home" "$work/tools/bin/uvx" --offline --no-index --from "$(echo "$old"/cairn_agent-*.whl)" cairn-agent --version
works "npx" "cairn [0-9]" env HOME="$work/npx-home" npm_config_cache="$npm_cache" npx --offline --yes \
  --package "$(echo "$old"/cairn-agent-[0-9]*.tgz)" --package "$(echo "$old"/cairn-agent-linux-x64-*.tgz)" cairn --version
echo "misuse: done"
