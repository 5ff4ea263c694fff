#!/usr/bin/env bash
# function commented() { :; }
set -euo pipefail
VERSION=1.2

usage() {
  cat <<EOF
function not_there() {
}
EOF
}

function deploy {
  local target=$1
  build "$target" && echo "} done {"
}

function clean-up() {
  rm -rf "${TMP:?}"
}

in_subshell() (
  cd /tmp && inner() { ls; }
)

deploy "$@"
