#!/bin/sh
# After installing or upgrading. A daemon that runs is left alone: it continues with the older program until it exits.
set -e

# Ubuntu lets a program create user namespaces, which bubblewrap needs, only if a profile names it. Where AppArmor does not know
# that rule (before version 4), no profile is needed.
if [ -e /etc/apparmor.d/abi/4.0 ] && command -v apparmor_parser >/dev/null 2>&1; then
  if apparmor_parser --skip-kernel-load --skip-cache /usr/share/cairn/apparmor >/dev/null 2>&1; then
    cp /usr/share/cairn/apparmor /etc/apparmor.d/cairn
    chmod 644 /etc/apparmor.d/cairn
    # Without a running AppArmor the profile is loaded at its next start.
    apparmor_parser --replace /etc/apparmor.d/cairn >/dev/null 2>&1 || true
  fi
fi
