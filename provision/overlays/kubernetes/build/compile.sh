#!/bin/bash
# Compiles Kubernetes' programs into one, the network's plugins, containerd's client, CoreDNS and kube-router's
# controller of policies; all static, of Go alone. Prints a line for each package that is compiled.
#
#   compile.sh OUTPUT        OUTPUT is an existing directory
set -euo pipefail

readonly output=$1
cd "$(dirname "${BASH_SOURCE[0]}")"
# Root of a Debian root has no home.
[[ -d ${HOME:-} ]] || export GOPATH=/tmp/go GOCACHE=/tmp/go-cache
export CGO_ENABLED=0

# version_of MODULE: as go.mod has it.
version_of() { go list -m -f '{{.Version}}' "$1"; }

# compile DIRECTORY PACKAGES TARGET [LINKER OPTION…]
compile() {
  local directory=$1 packages=$2 target=$3
  shift 3
  (cd "$directory" && go build -v -mod=readonly -trimpath -buildvcs=false -ldflags "-s -w $*" -o "$target" "$packages")
}

# As Kubernetes' own build does: the programs say this version, and compare it with one another's.
compile_cluster() {
  local version about=k8s.io/component-base/version
  version=$(cd cluster && version_of k8s.io/kubernetes)
  [[ $version =~ ^v([0-9]+)\.([0-9]+)\. ]]
  compile cluster . "$output/kubernetes" -X "$about.gitVersion=$version" -X "$about.gitMajor=${BASH_REMATCH[1]}" \
    -X "$about.gitMinor=${BASH_REMATCH[2]}"
}

mkdir -p "$output/plugins"
compile_cluster
compile plugins tool "$output/plugins/"
compile client tool "$output/"
compile addons ./... "$output/"
