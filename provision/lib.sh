# Sourced by every provisioning script: how they speak.

info() { printf '%s\n' "$*" >&2; }

warn() { printf 'warning: %s\n' "$*" >&2; }

fatal() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}
