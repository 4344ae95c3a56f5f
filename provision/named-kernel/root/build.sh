#!/bin/bash
# Makes the Debian root in which named kernels are compiled: the packages with which the standard kernel is, by its lock.
# As root, or as any user with unprivileged user namespaces; all of it belongs to the user.
#
#   build.sh OUTPUT        OUTPUT is an existing, empty directory
#
# Leaves in OUTPUT: root/, log, and a file `unlocked` with the reason if the packages of the lock were not to be had.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/debian.sh
source "$here/../../debian.sh"

readonly tools=gcc,libc6-dev,make,flex,bison,bc,xz-utils,kmod,patch,binutils
readonly packages_lock=$here/../../kernel/packages.lock

make_root() {
  export TMPDIR=/var/tmp
  make_locked_root "$packages_lock" '' "$output/root.tar" --format=tar --include="$tools"
  mkdir "$output/root"
  tar -x -C "$output/root" --no-same-owner --exclude='./dev/*' -f "$output/root.tar"
  rm "$output/root.tar"
}

end_with_caller
readonly output=$1
make_root >"$output/log" 2>&1 || {
  tail -n 40 "$output/log"
  exit 1
}
