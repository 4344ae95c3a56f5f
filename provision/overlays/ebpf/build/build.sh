#!/bin/bash
# Builds the data path from its source: by this machine's compiler for eBPF, or, where there is none, by Debian's in a root
# of its own that is gone afterwards.
#
#   build.sh OUTPUT        OUTPUT is an existing, empty directory
#
# Environment: that of ../../../debian.sh. The Debian root takes some 0.4 GB in /var/tmp while it is there.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/debian.sh
source "$here/../../../debian.sh"

readonly output=$1

# shellcheck disable=SC2016
build_in_debian_root() {
  TMPDIR=/var/tmp make_debian_root - --format=null --include=gcc-bpf,linux-libc-dev \
    --customize-hook="copy-in ${here@Q} /tmp" \
    --customize-hook='chroot "$1" /tmp/build/compile.sh /tmp' \
    --customize-hook="copy-out /tmp/datapath.o ${output@Q}"
}

if "$here/compile.sh" "$output" 2>/dev/null; then :; else build_in_debian_root; fi
