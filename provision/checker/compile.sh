#!/bin/bash
# Compiles the checker, static: a program of Go alone.
#
#   compile.sh OUTPUT        OUTPUT is an existing directory
set -euo pipefail

readonly output=$1
cd "$(dirname "${BASH_SOURCE[0]}")"
# Root of a Debian root has no home.
[[ -d ${HOME:-} ]] || export GOPATH=/tmp/go GOCACHE=/tmp/go-cache
CGO_ENABLED=0 go build -mod=readonly -trimpath -buildvcs=false -ldflags '-s -w' -o "$output/checker" .
