#!/bin/sh
# Before removing. An upgrade ('upgrade' from dpkg, 1 from rpm) changes nothing.
set -e
case "${1:-}" in
  remove | purge | 0) ;;
  *) exit 0 ;;
esac

# The units of users whose service manager runs.
if [ -d /run/systemd/system ] && command -v systemctl >/dev/null 2>&1; then
  for folder in /run/user/[0-9]*; do
    [ -d "$folder" ] || continue
    systemctl --user --machine="${folder#/run/user/}@.host" stop cairn.socket cairn.service >/dev/null 2>&1 || true
  done
fi

# Daemons of this system (not of a container beside it) that run the packaged program, or the one before an upgrade.
daemons() {
  for process in /proc/[0-9]*; do
    case "$(readlink "$process/exe" 2>/dev/null)" in
      /usr/lib/cairn/cairn | "/usr/lib/cairn/cairn (deleted)") ;;
      *) continue ;;
    esac
    # shellcheck disable=SC3013  # every sh of Debian and Fedora has it, and so does POSIX of 2024
    [ "$process/root" -ef / ] || continue
    echo "${process#/proc/}"
  done
}

# They have 20 seconds: more than daemon.drainSeconds, in which running work ends. What is in the log survives any end.
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

if [ -e /etc/apparmor.d/cairn ]; then
  if command -v apparmor_parser >/dev/null 2>&1; then
    apparmor_parser --remove /etc/apparmor.d/cairn >/dev/null 2>&1 || true
  fi
  rm -f /etc/apparmor.d/cairn
fi
