#!/usr/bin/env bash
# One package: install, first minute, upgrade, removal. Called by run.sh in new namespaces, with its variables.
set -euo pipefail
. "$(dirname "$0")/system.sh"

fail() {
  echo "FAILED: $*"
  exit 1
}
one() { [ $# = 1 ] && [ -e "$1" ] || fail "expected one file, not: $*"; echo "$1"; }

# Each package defines: files DIR (for the size), setup, install DIR, remove, cairn ARGS, listed (the folder to compare), data.
home=""
case "$package" in
  deb | rpm | tar | update) fresh_root "$package" ;;
  *)
    # Beside this machine's Python and Node: a new folder, which is the home as well.
    home="$(mktemp -d "$work/home-XXXXXX")"
    trap 'rm -rf "$home"' EXIT
    mkdir "$home/tools"
    cp -r "$project/tests/it/fixtures/sample" "$home/project"
    ;;
esac
in_home() { env -i PATH="$home/tools/bin:/usr/local/bin:/usr/bin:/bin" HOME="$home" LC_ALL=C npm_config_cache="$npm_cache" npm_config_update_notifier=false "$@"; }
folder() { if [ -n "$home" ]; then echo "$home/project"; else echo /home/tester/project; fi; }

case "$package" in
  deb)
    files() { one "$1"/cairn_*.deb; }
    install() { in_root dpkg -i "/packages-$1/$(basename "$(files "${!1}")")"; }
    remove() { in_root dpkg --purge cairn; }
    cairn() { as_user cairn "$@"; }
    ;;
  rpm)
    files() { one "$1"/cairn-*.rpm; }
    # Folders that the basic packages of a system with rpm own.
    setup() { mkdir -p "$root/usr/share/licenses" "$root/usr/lib/systemd/user"; }
    install() { rpm --root "$root" --nodeps -U "$(files "${!1}")"; }
    remove() { rpm --root "$root" -e cairn; }
    cairn() { as_user cairn "$@"; }
    ;;
  tar)
    files() { one "$1"/cairn-[0-9]*-linux.tar.gz; }
    install() { as_user env CAIRN_DOWNLOAD_BASE="/packages-$1" sh "/packages-$1/install.sh"; }
    remove() { as_user sh /packages-new/install.sh --uninstall; }
    cairn() { as_user cairn "$@"; }
    ;;
  update)
    files() { one "$1"/cairn-[0-9]*-linux.tar.gz; }
    install() {
      if [ "$1" = old ]; then
        as_user env CAIRN_DOWNLOAD_BASE=/packages-old sh /packages-old/install.sh
        return
      fi
      as_user cp -r /packages-signed /tmp/altered
      as_user sed -i 's/"size": /"size": 1/' /tmp/altered/manifest.json
      ! as_user cairn update --from /tmp/altered --key /packages-signed/release.pub || fail "an altered manifest was accepted"
      as_user cairn update --check --from /packages-signed --key /packages-signed/release.pub
      as_user cairn update --from /packages-signed --key /packages-signed/release.pub
      as_user rm -r /tmp/altered
    }
    remove() { as_user cairn uninstall --yes; }
    cairn() { as_user cairn "$@"; }
    ;;
  wheel)
    files() { one "$1"/cairn_agent-*.whl; }
    setup() { python3 -m venv "$home/tools"; }
    install() { in_home pip install --quiet --no-index --upgrade "$(files "${!1}")"; }
    # pip runs nothing at removal: the daemon is stopped first, as the guide asks.
    remove() { in_home cairn stop; in_home pip uninstall --quiet --yes cairn-agent; }
    cairn() { in_home cairn "$@"; }
    ;;
  npm)
    files() { one "$1"/cairn-agent-linux-x64-*.tgz; }
    setup() { mkdir -p "$home/tools/bin" "$home/tools/lib/node_modules"; }
    install() { in_home npm install --global --prefix "$home/tools" --offline --silent "$(one "${!1}"/cairn-agent-[0-9]*.tgz)" "$(files "${!1}")"; }
    remove() { in_home cairn stop; in_home npm uninstall --global --prefix "$home/tools" --silent cairn-agent cairn-agent-linux-x64; }
    cairn() { in_home cairn "$@"; }
    ;;
  python)
    files() { one "$1"/cairn_agent_client-*.whl; }
    setup() { python3 -m venv "$home/tools"; }
    install() {
      in_home pip install --quiet --no-index --find-links "$work/wheels" --upgrade "$(files "${!1}")" "$(one "${!1}"/cairn_agent-*.whl)"
    }
    remove() { in_home cairn stop; in_home pip uninstall --quiet --yes cairn-agent cairn-agent-client websockets; }
    cairn() { in_home cairn "$@"; }
    ;;
  typescript)
    files() { one "$1"/cairn-client-*.tgz; }
    install() {
      in_home npm install --prefix "$home/tools" --offline --silent "$(files "${!1}")" \
        "$(one "${!1}"/cairn-agent-[0-9]*.tgz)" "$(one "${!1}"/cairn-agent-linux-x64-*.tgz)" ws@8
    }
    remove() {
      cairn stop
      in_home npm uninstall --prefix "$home/tools" --silent cairn-client cairn-agent cairn-agent-linux-x64 ws
    }
    cairn() { in_home "$home/tools/node_modules/.bin/cairn" "$@"; }
    ;;
esac
declare -F setup >/dev/null || setup() { :; }

# The readme's first example, with the folder of this test, run from the installed package.
example() {
  local readme language
  case "$package" in
    python) readme="$project/client-sdk/python/README.md" language=python ;;
    typescript) readme="$project/client-sdk/typescript/README.md" language=ts ;;
    *) return 0 ;;
  esac
  awk -v fence="\`\`\`$language" '$0 == fence { inside = 1; next } $0 == "```" { inside = 0 } inside' "$readme" \
    | sed "s|/home/me/project|$(folder)|" >"$home/project/example.$language"
  local seen
  case "$package" in
    python) seen="$(in_home CAIRN_BIN="$home/tools/bin/cairn" python3 -W error "$home/project/example.python")" ;;
    typescript)
      # Node looks for packages in the folders above the script.
      mv "$home/project/example.ts" "$home/tools/example.mjs"
      seen="$(in_home CAIRN_BIN="$home/tools/node_modules/.bin/cairn" node "$home/tools/example.mjs")"
      rm "$home/tools/example.mjs"
      ;;
  esac
  grep -q Python <<<"$seen" && grep -q 'worker.py:' <<<"$seen" || fail "the example of the readme printed: $seen"
}

# Files of the system, or of the tools' folder; the data of the user is not part of a package.
snapshot() {
  if [ -n "$home" ]; then
    # npm's own lists of what is installed stay, and say that nothing is.
    (cd "$home" && find . -not -path './.local/share/cairn*' -not -path './project/*' -not -name '*.pyc' -not -name __pycache__ \
      -not -name '*package*.json' -not -path ./tools/node_modules -not -path ./tools/node_modules/.bin | sort)
  else
    find "$root" -xdev -not -path "$root/proc/*" -not -path "$root/dev/*" -not -path "$root/packages-*" -not -path "$root/tmp/*" \
      -not -path "$root/home/tester/.local/share/cairn*" -not -path "$root/var/log/*" -not -path "$root/var/lib/rpm*" \
      -not -path "$root/var/lib/dpkg/*-old" -not -path "$root/var/lib/dpkg/lock*" -printf '%P\n' | sort
  fi
}

setup
# The user's own folders, which removing a package does not remove.
[ -n "$home" ] || as_user mkdir -p /home/tester/.local/share
[ "$package" != rpm ] || rpm --root "$root" --initdb
mkdir -p "${home:-$work}/.local/share" "${home:-$work}/.npm" 2>/dev/null || true
snapshot >"$work/$package.before"

started="$(now)"
install old
cairn --version
cairn explore "$(folder)" >"$work/$package.summary"
seconds="$(since "$started")"
grep -q Python "$work/$package.summary" || fail "no summary: $(cat "$work/$package.summary")"
cairn search 'drop a job after too many attempts' --root "$(folder)" | grep -q worker.py || fail "search after the install"
example
case "$package" in
  deb) owner=dpkg ;;
  rpm) owner=rpm ;;
  wheel) owner=pip ;;
  npm) owner=npm ;;
  *) owner="" ;;
esac
if [ -n "$owner" ]; then
  seen="$(cairn update 2>&1 || true)"
  grep -q "belongs to $owner" <<<"$seen" || fail "cairn update in a package of $owner printed: $seen"
fi
if [ "$package" = deb ]; then
  if [ -e "$root/etc/apparmor.d/abi/4.0" ]; then
    grep -q userns "$root/etc/apparmor.d/cairn" || fail "there is no profile for AppArmor"
    echo "NOTE the profile for AppArmor is in place"
  else
    [ ! -e "$root/etc/apparmor.d/cairn" ] || fail "a profile that this AppArmor cannot read"
  fi
fi
[ "$(daemons | wc -l)" = 1 ] || fail "one daemon is expected, not: $(daemons)"
daemon="$(daemons)"
helper="$(dirname "$(readlink "/proc/$daemon/exe")")/cairn-sandbox"
[ -x "${root:-}$helper" ] || [ -x "$helper" ] || fail "there is no helper beside the daemon: $helper"
cairn service install --dry-run >"$work/$package.units"
program="$(sed -n 's/^ExecStart="\(.*\)" serve.*/\1/p' "$work/$package.units")"
[ -x "${root:-}$program" ] || fail "the unit names a program that does not exist: $program"

# The daemon runs while its program is replaced: it goes on, answers the newer client, and its data stays.
install new
[ "$(daemons)" = "$daemon" ] || fail "the daemon did not survive the upgrade: $(daemons)"
cairn status >"$work/$package.status" || fail "no answer after the upgrade"
cairn stop
cairn explore "$(folder)" >"$work/$package.summary2"
[ "$(daemons | wc -l)" = 1 ] || fail "no daemon of the new program"
[ "$(daemons)" != "$daemon" ] || fail "the old daemon was not stopped"

remove
[ -z "$(daemons)" ] || fail "a daemon is left: $(daemons)"
[ -z "$(ss -Hltnx | grep -i cairn || true)" ] && [ -z "$(ss -Hltn)" ] || fail "a socket is left: $(ss -Hltn)"
snapshot >"$work/$package.after"
if ! difference="$(diff "$work/$package.before" "$work/$package.after")"; then
  fail "files differ after the removal: $(head -n 40 <<<"$difference")"
fi
size="$(stat -c %s "$(files "$new")" | awk '{ printf "%.2f", $1 / 1e6 }')"
printf 'ROW %-11s %9s %8s  %-44s %s\n' "$package" "$size" "$seconds" "daemon goes on, next start is the new one" "no file, unit, socket or process left"
