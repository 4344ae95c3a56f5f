#!/bin/bash
# Builds Kubernetes' programs from their Go modules, as ../../../go.sh has it; there is a go.mod in each folder here.
# flanneld is built as its own folder has it.
#
#   build.sh OUTPUT        OUTPUT is an existing, empty directory
#
# Environment: that of ../../../debian.sh. The Debian root takes some 5 GB in /var/tmp while it is there.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/go.sh
source "$here/../../../go.sh"

readonly output=$1

build() {
  if go_will_do "$here/plugins"; then
    "$here/compile.sh" "$output"
  else
    compile_by_debians_go "$here" "$output" '' kubernetes plugins ctr coredns kube-router
  fi
  env -u MINIGTS_LIFELINE "$here/../../flannel/build/build.sh" "$output"
}

end_with_caller
build >"$output/log" 2>&1 || {
  tail -n 40 "$output/log"
  exit 1
}
