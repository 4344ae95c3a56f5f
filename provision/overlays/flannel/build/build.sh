#!/bin/bash
# Builds flanneld from its Go module, at the version in go.mod and with the hashes in go.sum.
#
#   build.sh OUTPUT        OUTPUT is an existing, empty directory
#
# Needs Go (the version that go.mod names, or a later one) and, for the udp backend, a C compiler.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here output=$1

fatal() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

check_tools() {
  command -v go >/dev/null || fatal "flanneld is built with Go: install Go 1.25 or later, or apt-get install golang-go"
  command -v cc >/dev/null || fatal "flanneld's udp backend is written in C: apt-get install gcc libc6-dev"
}

# Static: it runs on hosts that have another C library.
build_flanneld() {
  CGO_ENABLED=1 go build -C "$here" -mod=readonly -trimpath -buildvcs=false \
    -ldflags '-s -w -linkmode external -extldflags -static' -o "$output/flanneld" github.com/flannel-io/flannel
}

check_tools
build_flanneld
