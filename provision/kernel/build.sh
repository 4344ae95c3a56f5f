#!/bin/bash
# Builds the hosts' full kernel from Debian's source of Linux, in a Debian root of its own that is gone afterwards. As
# root, or as any user with unprivileged user namespaces.
#
#   build.sh OUTPUT        OUTPUT is an existing, empty directory
#   build.sh --lock        writes ./packages.lock, the packages of that root, from what the mirror has now
#
# Environment: those of ../debian.sh and ../fetch.sh. ./sources says which sources were proven.
#
# Takes some 3 GB in /var/tmp while it runs, and 0.2 GB in OUTPUT. Leaves there: linux, modules/ (what modprobe wants to
# know of a kernel that has everything built in), version (the source's, and whether nobody has proven it), log, and, if the
# packages of the lock were not to be had, a file `unlocked` with the reason.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/debian.sh
source "$here/../debian.sh"

readonly tools=gcc,libc6-dev,make,flex,bison,bc,xz-utils,kmod,patch,binutils
readonly packages_lock=$here/packages.lock
readonly recipe=("$here"/{compile.sh,config,patches})

# It leads no process group, and ends with this one.
fetch() {
  mkdir "$output/fetched"
  env -u MINIGTS_LIFELINE "$here/../fetch.sh" "$here/sources" "$output/fetched" 'minigts kernel build'
}

# Nothing remains of the root but what the hooks copy out.
# shellcheck disable=SC2016
compile() {
  TMPDIR=/var/tmp make_locked_root "$packages_lock" '' - --format=null --include="$tools" \
    --customize-hook='mkdir "$1/tmp/kernel"' \
    --customize-hook="copy-in ${recipe[*]@Q} /tmp/kernel" \
    --customize-hook="copy-in ${output@Q}/fetched /tmp" \
    --customize-hook='chroot "$1" /tmp/kernel/compile.sh' \
    --customize-hook="copy-out /tmp/out/linux /tmp/out/modules /tmp/out/version ${output@Q}"
  rm -r "$output/fetched"
}

end_with_caller
if [[ $1 == --lock ]]; then
  write_lock "$packages_lock" --include="$tools"
  exit
fi
readonly output=$1
{ fetch && compile; } >"$output/log" 2>&1 || {
  tail -n 40 "$output/log"
  exit 1
}
