#!/bin/bash
# Builds the hosts' agent, with Debian's compiler and Debian's package of the crate it uses, in a Debian root of its own
# that is gone afterwards. As root, or as any user with unprivileged user namespaces.
#
#   build.sh OUTPUT        OUTPUT is an existing directory
#   build.sh --lock        writes ./packages.lock, the packages of that root, from what the mirror has now
#
# Environment: that of ../debian.sh.
#
# Takes some 1.2 GB in /var/tmp while it runs. Leaves in OUTPUT: agent, which needs no library, and, if the packages of the
# lock were not to be had, a file `unlocked` with the reason.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/debian.sh
source "$here/../debian.sh"

readonly packages=cargo,rustc,gcc,libc6-dev,librust-libc-dev
readonly packages_lock=$here/packages.lock
readonly recipe=("$here"/{compile.sh,Cargo.toml,Cargo.lock,src} "$here/../rust.sh")

# Nothing remains of the root but what the hooks copy out. Of this directory only the recipe is copied in, and not what
# a developer's own cargo has left in it.
# shellcheck disable=SC2016
build() {
  TMPDIR=/var/tmp make_locked_root "$packages_lock" '' - --format=null --include="$packages" \
    --customize-hook='mkdir "$1/tmp/agent" "$1/tmp/out"' \
    --customize-hook="copy-in ${recipe[*]@Q} /tmp/agent" \
    --customize-hook='chroot "$1" /tmp/agent/compile.sh' \
    --customize-hook="copy-out /tmp/out/agent ${output@Q}"
}

end_with_caller
if [[ $1 == --lock ]]; then
  write_lock "$packages_lock" --include="$packages"
else
  readonly output=$1
  build
fi
