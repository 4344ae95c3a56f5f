#!/usr/bin/env bash
# Installs system packages by apt. Sourced by the launcher; run by `minigts setup` where minigts is an installed package.
#
#   install-packages.sh PACKAGE…
#
# Environment:
#   MINIGTS_APT=no    install nothing; only say which packages are missing

info() { printf 'minigts: %s\n' "$*" >&2; }

# install_packages PACKAGE…: returns 0 when they are installed, or says why not and returns 1.
install_packages() {
  local command="apt-get install -y --no-install-recommends $*" log as_root=()
  if [[ ${MINIGTS_APT:-} == no ]] || ! type -P apt-get >/dev/null; then
    info "these system packages (names of Debian and Ubuntu) are missing: $*"
    return 1
  fi
  if ((EUID != 0)); then
    if ! type -P sudo >/dev/null || ! { sudo -n true 2>/dev/null || [[ -t 0 && -t 2 ]]; }; then
      info "system packages are missing; as root, run:  $command"
      return 1
    fi
    as_root=(sudo)
  fi
  info "installing system packages: $*"
  log=$(mktemp) || {
    info "cannot write to ${TMPDIR:-/tmp}, so nothing is installed; as root, run:  $command"
    return 1
  }
  if ! run_apt install -y --no-install-recommends "$@" &>"$log" &&
    ! { run_apt update && run_apt install -y --no-install-recommends "$@"; } &>"$log"; then
    tail -n 15 "$log" >&2
    rm -f "$log"
    info "that failed; as root, run:  $command"
    return 1
  fi
  rm -f "$log"
}

# run_apt ARGUMENT…: runs apt-get, as root by the caller's array `as_root`.
run_apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  install_packages "$@"
fi
