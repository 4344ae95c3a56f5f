# shellcheck shell=bash
# Sourced by every provisioning script: their messages.

info() { printf '%s\n' "$*" >&2; }

warn() { printf 'warning: %s\n' "$*" >&2; }

fatal() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# wait_until SECONDS COMMAND…: until the command succeeds; fails when the time is up. It is tried every tenth of a second,
# or as $pause_s says.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep "${pause_s:-0.1}"
  done
}
