#!/bin/bash
# Called by build.sh as a customize hook: turns a fresh Debian root into a host's.
#
#   customize.sh ROOT
#
# Environment: MINIGTS_WIRE, as for build.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/lib.sh
source "$here/../lib.sh"

readonly root=$1
readonly own=$root/usr/lib/minigts

# Modules a host can need: the whole network and the file systems of containers. The rest is for hardware.
readonly kept_modules='net drivers/net fs/overlayfs fs/fuse lib crypto arch'

install_own_programs() {
  install -d "$own"
  install -m 755 "$here/agent.py" "$here/prepare-system" "$here/probe.py" "$here/finish" "$own/"
  install -m 644 "$MINIGTS_WIRE" "$own/wire.py"
}

keep_needed_modules() {
  local from version part
  from=$(echo "$root"/usr/lib/uml/modules/*)
  version=$(basename "$from")
  for part in $kept_modules; do
    if [[ -d $from/kernel/$part ]]; then
      mkdir -p "$root/usr/lib/modules/$version/kernel/$part"
      cp -a "$from/kernel/$part/." "$root/usr/lib/modules/$version/kernel/$part/"
    fi
  done
  cp "$from"/modules.{order,builtin,builtin.modinfo} "$root/usr/lib/modules/$version/"
  chroot "$root" depmod -a "$version"
  rm -rf "$root/usr/lib/uml"
}

# The kernel was linked against this root's C library, which may be newer than the machine's. It runs with that library
# and its loader from one directory, which is its working directory: the loader's name in it is made relative, in place.
take_kernel_apart() {
  local loader=/lib64/ld-linux-x86-64.so.2 beside=./ld-linux-x86-64.so.2
  install -d "$own/boot"
  install -m 755 "$root$loader" "$root/usr/lib/x86_64-linux-gnu/libc.so.6" "$own/boot/"
  install -m 755 "$root/usr/bin/linux.uml" "$own/boot/linux"
  LC_ALL=C sed -i "s#$loader\x00#$beside\x00$(printf '\\x00%.0s' $(seq $((${#loader} - ${#beside}))))#" "$own/boot/linux"
  rm "$root/usr/bin/linux.uml"
}

# What the measuring container holds: programs of this root with the libraries they load.
pack_measuring_container() {
  local program programs=(/bin/sh /usr/bin/sleep /usr/bin/iperf3 /usr/bin/netperf /usr/bin/netserver /usr/bin/ping
    /usr/sbin/ethtool /usr/bin/ip /usr/sbin/tc /usr/bin/stress-ng)
  local -a files=(/etc/protocols /etc/services)
  for program in "${programs[@]}"; do
    files+=("$program")
    while read -r library; do files+=("$library"); done < <(
      chroot "$root" ldd "$program" | grep -o '/[^ ]*' | sort -u
    )
  done
  files+=(/usr/lib/x86_64-linux-gnu/libgcc_s.so.1)
  mkdir -p "$root/tmp/measure/tmp"
  # shellcheck disable=SC2016
  chroot "$root" bash -c 'cd /; for file in "$@"; do [[ ! -e $file ]] || cp --parents -L "$file" /tmp/measure/; done' \
    bash "${files[@]}"
  tar -c -C "$root/tmp/measure" --owner=0 --group=0 . >"$own/measure.tar"
  rm -rf "$root/tmp/measure"
}

write_package_lock() {
  # shellcheck disable=SC2016
  chroot "$root" dpkg-query -W -f '${Package} ${Version}\n' >"$own/packages.lock"
}

remove_what_nobody_reads() {
  rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/var/cache/debconf/* "$root"/var/log/* \
    "$root"/usr/share/{doc,man,info,locale,lintian,bug} "$root"/usr/lib/python3*/test
}

name_system() {
  echo minigts >"$root/etc/hostname"
  echo '127.0.0.1 localhost' >"$root/etc/hosts"
  rm -f "$root/etc/resolv.conf"
  : >"$root/etc/resolv.conf"
}

install_own_programs
keep_needed_modules
take_kernel_apart
pack_measuring_container
write_package_lock
remove_what_nobody_reads
name_system
