#!/bin/bash
# Builds the clock of labs in virtual time, with Debian's compiler and Debian's packages of the crates it uses, in a
# Debian root of its own that is gone afterwards. As root, or as any user with unprivileged user namespaces.
#
#   build.sh OUTPUT        OUTPUT is an existing, empty directory
#   build.sh --lock        writes ./packages.lock, the packages of that root, from what the mirror has now
#
# Environment: that of ../debian.sh.
#
# Takes some 1.2 GB in /var/tmp while it runs. Leaves in OUTPUT: clock, which needs no library, crates.lock (which
# versions are in it), log, and, if the packages of the lock were not to be had, a file `unlocked` with the reason.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/debian.sh
source "$here/../debian.sh"

readonly compiler=cargo,rustc,gcc,libc6-dev
readonly packages_lock=$here/packages.lock
readonly recipe=("$here"/{compile.sh,Cargo.toml,Cargo.lock,src} "$here/../rust.sh")
readonly crates=(libc nix serde serde-json virtio-queue vm-memory xxhash-rust)

packages() {
  local crate
  printf %s "$compiler"
  for crate in "${crates[@]}"; do printf ',librust-%s-dev' "$crate"; done
}

# Nothing remains of the root but what the hooks copy out. Of this directory only the recipe is copied in, and not what
# a developer's own cargo has left in it.
# shellcheck disable=SC2016
build() {
  TMPDIR=/var/tmp make_locked_root "$packages_lock" '' - --format=null --include="$(packages)" \
    --customize-hook='mkdir "$1/tmp/clock" "$1/tmp/out"' \
    --customize-hook="copy-in ${recipe[*]@Q} /tmp/clock" \
    --customize-hook='chroot "$1" /tmp/clock/compile.sh' \
    --customize-hook="copy-out /tmp/out/clock /tmp/out/crates.lock ${output@Q}"
}

end_with_caller
if [[ $1 == --lock ]]; then
  write_lock "$packages_lock" --include="$(packages)"
  exit
fi
readonly output=$1
build >"$output/log" 2>&1 || {
  tail -n 40 "$output/log"
  exit 1
}
