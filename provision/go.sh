# shellcheck shell=bash
# Sourced by builds of programs from Go modules, at the versions in a go.mod and with the hashes in its go.sum: by this
# machine's Go, or, where there is none or an old one, by Debian's in a root of its own that is gone afterwards. A build's
# recipe is a folder `build` with a script `compile.sh OUTPUT`.
#
# Environment: that of debian.sh.

# shellcheck source=provision/debian.sh
source "$(dirname "${BASH_SOURCE[0]}")/debian.sh"

readonly go_suite=sid
readonly certificates=/etc/ssl/certs/ca-certificates.crt
go_preferences=$(realpath "$(dirname "${BASH_SOURCE[0]}")")/go-preferences
readonly go_preferences

# go_will_do FOLDER: Go 1.21 and later fetches the version that the go.mod there names, unless it was told not to; an older
# one cannot read it.
go_will_do() { command -v go >/dev/null && (cd "$1" && go list -m) &>/dev/null; }

# compile_by_debians_go RECIPE OUTPUT PACKAGES PRODUCT…: PACKAGES, with commas, are those beside Go. This machine's
# certificates go along: they may name an authority that is its own.
# shellcheck disable=SC2016
compile_by_debians_go() {
  local recipe=$1 output=$2 packages=$3
  local -a trust=()
  shift 3
  [[ ! -r $certificates ]] || trust=(--customize-hook="upload $certificates $certificates")
  TMPDIR=/var/tmp make_debian_root - --format=null --include="golang-go,ca-certificates${packages:+,$packages}" \
    --setup-hook="upload ${go_preferences@Q} /etc/apt/preferences.d/go" \
    --setup-hook="$(add_suite "$go_suite")" \
    "${trust[@]}" \
    --customize-hook="copy-in ${recipe@Q} /tmp" \
    --customize-hook='mkdir "$1/tmp/built" && chroot "$1" /tmp/build/compile.sh /tmp/built' \
    --customize-hook="copy-out ${*/#/\/tmp\/built\/} ${output@Q}"
}
