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

# correct MODULE VERSION FILE EXPRESSION CORRECTED, in a copy of cluster/: FILE of the module with what sed's EXPRESSION
# changes; as it is where it has a line like CORRECTED, since its authors have done so.
correct() {
  local place name=${1##*/}
  place=$(go mod download -json "$1@$2" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  ! grep -q "$5" "$place/$3" || return 0
  cp -r --no-preserve=mode "$place" "../$name"
  sed -i "$4" "../$name/$3"
  if cmp -s "$place/$3" "../$name/$3"; then
    echo "$3 of $1 $2 is not the file that is to be corrected" >&2
    return 1
  fi
  go mod edit -replace "$1=../$name"
}

# Who logs events waits for the end of their channel in a loop, which takes the processor from who is to end it: with one
# processor for 10 ms at each start of the API server, by a clock that stands still meanwhile in virtual time. Kubernetes
# has it corrected since its pull request 137398, in 1.36 and later.
correct_events() {
  correct k8s.io/client-go "$1" tools/record/event.go \
    's/case watchEvent := <-watcher.ResultChan():/case watchEvent, open := <-watcher.ResultChan():\nif !open {\nreturn\n}/' \
    'case watchEvent, [a-z]* := <-watcher.ResultChan():'
}

# As Kubernetes' own build does: the programs say this version, and compare it with one another's.
compile_cluster() (
  local version about=k8s.io/component-base/version
  cp -r cluster "$work/cluster"
  cd "$work/cluster"
  version=$(version_of k8s.io/kubernetes)
  [[ $version =~ ^v([0-9]+)\.([0-9]+)\. ]]
  correct_events "v0${version#v1}"
  compile . . "$output/kubernetes" -X "$about.gitVersion=$version" -X "$about.gitMajor=${BASH_REMATCH[1]}" \
    -X "$about.gitMinor=${BASH_REMATCH[2]}"
)

work=$(mktemp -d)
readonly work
trap 'rm -rf "$work"' EXIT
mkdir -p "$output/plugins"
compile_cluster
compile plugins tool "$output/plugins/"
compile client tool "$output/"
compile addons ./... "$output/"
