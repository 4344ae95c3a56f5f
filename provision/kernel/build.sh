#!/bin/bash
# Builds the hosts' full kernel from Debian's source of Linux, in a Debian root of its own that is gone afterwards. As
# root, or as any user with unprivileged user namespaces.
#
#   build.sh OUTPUT        OUTPUT is an existing, empty directory
#
# Environment: that of ../debian.sh.
#
# Takes some 3 GB in /var/tmp while it runs. Leaves in OUTPUT: linux, modules/ (what modprobe wants to know of a kernel
# that has everything built in), version (the source package's) and log.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/debian.sh
source "$here/../debian.sh"

readonly source_suite=sid
readonly source_package=linux-source-7.2
readonly tools=gcc,libc6-dev,make,flex,bison,bc,xz-utils,kmod,patch,$source_package

# Nothing remains of the root but what the hooks copy out.
# shellcheck disable=SC2016
build() {
  TMPDIR=/var/tmp make_debian_root - --format=null --include="$tools" \
    --setup-hook="upload ${here@Q}/apt-preferences /etc/apt/preferences.d/kernel" \
    --setup-hook="$(add_suite "$source_suite")" \
    --customize-hook="copy-in ${here@Q} /tmp" \
    --customize-hook='chroot "$1" /tmp/kernel/compile.sh' \
    --customize-hook="copy-out /tmp/out/linux /tmp/out/modules /tmp/out/version ${output@Q}"
}

readonly output=$1
end_with_caller
build >"$output/log" 2>&1 || {
  tail -n 40 "$output/log"
  exit 1
}
