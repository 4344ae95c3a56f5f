#!/bin/bash
# Compiles flanneld, with its udp backend, which is written in C. Static: it runs on hosts that have another C library.
#
#   compile.sh OUTPUT        OUTPUT is an existing directory
set -euo pipefail

readonly output=$1
cd "$(dirname "${BASH_SOURCE[0]}")"
# Root of a Debian root has no home.
[[ -d ${HOME:-} ]] || export GOPATH=/tmp/go GOCACHE=/tmp/go-cache
CGO_ENABLED=1 go build -mod=readonly -trimpath -buildvcs=false \
  -ldflags '-s -w -linkmode external -extldflags -static' -o "$output/flanneld" github.com/flannel-io/flannel
