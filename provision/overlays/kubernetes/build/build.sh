#!/bin/bash
# Builds Kubernetes' programs from their Go modules, at the versions in the go.mod of each folder here and with the hashes in
# its go.sum: by this machine's Go, or, where there is none or an old one, by Debian's in a root of its own that is gone
# afterwards. flanneld is built as its own folder has it.
#
#   build.sh OUTPUT        OUTPUT is an existing, empty directory
#
# Environment: that of ../../../debian.sh. The Debian root takes some 5 GB in /var/tmp while it is there.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/debian.sh
source "$here/../../../debian.sh"

readonly output=$1
readonly go_suite=sid
readonly certificates=/etc/ssl/certs/ca-certificates.crt

# Go 1.21 and later fetches the version that go.mod names, unless it was told not to; an older one cannot read go.mod.
machine_will_do() {
  command -v go >/dev/null && (cd "$here/plugins" && go list -m) &>/dev/null
}

# This machine's certificates go along: they may name an authority that is its own.
# shellcheck disable=SC2016
build_in_debian_root() {
  local -a trust=()
  [[ ! -r $certificates ]] || trust=(--customize-hook="upload $certificates $certificates")
  TMPDIR=/var/tmp make_debian_root - --format=null --include=golang-go,ca-certificates \
    --setup-hook="upload ${here@Q}/apt-preferences /etc/apt/preferences.d/go" \
    --setup-hook="$(add_suite "$go_suite")" \
    "${trust[@]}" \
    --customize-hook="copy-in ${here@Q} /tmp" \
    --customize-hook='mkdir "$1/tmp/built" && chroot "$1" /tmp/build/compile.sh /tmp/built' \
    --customize-hook="copy-out /tmp/built/kubernetes /tmp/built/plugins /tmp/built/ctr ${output@Q}" \
    --customize-hook="copy-out /tmp/built/coredns /tmp/built/kube-router ${output@Q}"
}

build() {
  if machine_will_do; then "$here/compile.sh" "$output"; else build_in_debian_root; fi
  env -u MINIGTS_LIFELINE "$here/../../flannel/build/build.sh" "$output"
}

end_with_caller
build >"$output/log" 2>&1 || {
  tail -n 40 "$output/log"
  exit 1
}
