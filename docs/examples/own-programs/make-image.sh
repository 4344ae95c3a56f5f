#!/bin/bash
# make-image.sh IMAGE.tar PACKAGE…: a root file system with these packages of this machine's own Debian or Ubuntu and what
# they depend on, as a tar that a topology can name as an image. As any user; installs nothing here. No package's scripts
# run, so there is no more in it than its files.
set -euo pipefail

readonly tools=(dash coreutils libc-bin)

# Every package that these need, real ones alone.
needed() {
  apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "$@" |
    grep -o '^[a-z0-9][^ :]*' | sort -u | grep -vxE 'debconf|dpkg|perl-base|init-system-helpers|libdebconfclient0'
}

# Debian has had one place for programs since bookworm; its packages still name two.
make_root() {
  local name
  mkdir -p "$1/etc" "$1/tmp" "$1/run" "$1/var/log"
  chmod 1777 "$1/tmp"
  for name in bin sbin lib lib64; do
    mkdir -p "$1/usr/$name"
    ln -s "usr/$name" "$1/$name"
  done
  printf 'root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33::/var/www:/bin/sh\n' >"$1/etc/passwd"
  printf 'root:x:0:\nwww-data:x:33:\nadm:x:4:\n' >"$1/etc/group"
}

unpack_packages() {
  local root=$1 package
  (cd "$work" && apt-get -qq download "${@:2}")
  for package in "$work"/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink --no-same-owner -C "$root"
  done
}

# What is not needed to run: manuals, translations.
leave_out() { rm -rf "$1"/usr/share/{doc,man,info,locale,lintian}; }

image=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mapfile -t packages < <(needed "${tools[@]}" "${@:2}")
make_root "$work/root"
unpack_packages "$work/root" "${packages[@]}"
leave_out "$work/root"
tar -c --owner=0 --group=0 --sort=name -C "$work/root" -f "$image" .
echo "$image: $(du -h "$image" | cut -f1), ${#packages[@]} packages"
