#!/bin/bash
# Builds the root file system of a host. As root, or as any user with unprivileged user namespaces.
#
#   build.sh OUTPUT        OUTPUT is an existing, empty directory
#
# Environment:
#   MINIGTS_DEBIAN_MIRROR  a Debian mirror; else the one in this machine's apt configuration
#   MINIGTS_WIRE           path of wire.py, which host and guest share
#   MINIGTS_IMAGE_MB       size of the file system in MB
#
# Leaves in OUTPUT: root.ext4, boot/ (the User-Mode Linux kernel with the libraries it runs with) and packages.lock.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/lib.sh
source "$here/../lib.sh"

readonly suite=trixie
readonly kernel_suite=sid # the first kernels with seccomp mode: see docs/decisions/0001-uml-kernel.md
readonly output=$1
readonly archive=$output/root.tar
readonly image_mb=${MINIGTS_IMAGE_MB:-2500}

packages() { grep -v '^#' "$here/packages" | paste -sd,; }

# Debian mirrors that this machine's own apt uses; on another distribution there are none.
mirror() {
  if [[ -n ${MINIGTS_DEBIAN_MIRROR:-} ]]; then
    echo "$MINIGTS_DEBIAN_MIRROR"
  elif command -v apt-get >/dev/null; then
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
      awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }'
  fi
}

# A mirror that is slow to follow may hold an index of the kernel's suite past its date; it is signed all the same.
sources() {
  local mirror=$1
  echo "deb $mirror $suite main non-free"
  echo "deb [check-valid-until=no] $mirror $kernel_suite main"
}

mode() { [[ $(id -u) == 0 ]] && echo root || echo unshare; }

bootstrap() {
  local found
  found=$(mirror)
  [[ -n $found ]] || fatal "no Debian mirror in this machine's apt configuration: set MINIGTS_DEBIAN_MIRROR to one"
  info "building a Debian $suite root from $found"
  sources "$found" | mmdebstrap --mode="$(mode)" --variant=minbase --include="$(packages)" \
    --aptopt='Apt::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/info/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/bash-completion/*' \
    --setup-hook="'$here/prefer-kernel.sh' \"\$1\" $kernel_suite" \
    --customize-hook="MINIGTS_WIRE='$MINIGTS_WIRE' '$here/customize.sh' \"\$1\"" \
    --format=tar "$suite" "$archive" -
}

# With the same uids as in the archive: as root, or as root of a user namespace. The image is written through a
# descriptor, since that root may not enter the caller's own directories.
make_file_system() {
  local -a as_root=()
  [[ $(mode) == root ]] || as_root=(mmdebstrap --unshare-helper)
  : >"$output/root.ext4"
  chmod 666 "$output/root.ext4"
  # shellcheck disable=SC2016
  "${as_root[@]}" bash -euc '
    root=$(mktemp -d)
    trap "rm -rf --one-file-system $root" EXIT
    tar -x --numeric-owner -C "$root" --exclude="./dev/*" <&4
    mke2fs -q -F -t ext4 -O ^has_journal -E lazy_itable_init=0,root_owner=0:0 -m 0 -d "$root" /dev/fd/3 "$1M"
  ' bash "$image_mb" 3<>"$output/root.ext4" 4<"$archive"
  chmod 644 "$output/root.ext4"
}

take_out_kernel() {
  mkdir "$output/boot"
  tar -x -C "$output/boot" --strip-components=5 -f "$archive" ./usr/lib/minigts/boot
  tar -xO -f "$archive" ./usr/lib/minigts/packages.lock >"$output/packages.lock"
}

bootstrap
make_file_system
take_out_kernel
rm "$archive"
