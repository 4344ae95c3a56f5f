#!/bin/bash
# Runs inside a fresh Debian root as build.sh's customize hook, and turns it into a host's. In /tmp is image/ (this
# directory), which build.sh has copied there; other files in /tmp are mmdebstrap's. The agent comes afterwards.
set -euo pipefail

readonly own=/usr/lib/minigts

# Modules a host can need: the whole network and the file systems of containers. The rest is for hardware.
readonly kept_modules='net drivers/net fs/overlayfs fs/fuse lib crypto arch'

install_own_programs() {
  install -d "$own"
  install -m 755 /tmp/image/finish "$own/"
  ln -s agent "$own/probe"
}

# What people type by habit and a host lacks, or that does nothing here, is answered by ./advise. Debian's interactive shells
# call /usr/lib/command-not-found for every other unknown program.
install_advice() {
  local advice=/usr/lib/command-not-found name
  install -m 755 /tmp/image/advise "$advice"
  for name in $("$advice" --names); do ln -s "$advice" "/usr/local/bin/$name"; done
  ln -s /usr/bin/vim.tiny /usr/local/bin/vim
}

# With a terminal of its own sudo would take what is typed, or piped, for the commands after it.
leave_terminal_to_programs() {
  echo 'Defaults !use_pty' >/etc/sudoers.d/terminal
  chmod 440 /etc/sudoers.d/terminal
}

keep_needed_modules() {
  local from version to part
  from=$(echo /usr/lib/uml/modules/*)
  version=${from##*/}
  to=/usr/lib/modules/$version
  for part in $kept_modules; do
    if [[ -d $from/kernel/$part ]]; then
      mkdir -p "$to/kernel/$part"
      cp -a "$from/kernel/$part/." "$to/kernel/$part/"
    fi
  done
  cp "$from"/modules.{order,builtin,builtin.modinfo} "$to/"
  depmod -a "$version"
  rm -rf /usr/lib/uml
}

# The kernel was linked against this root's C library, which may be newer than the machine's. It runs with that library
# and its loader from one directory, which is its working directory: the loader's name in it is made relative, in place.
take_kernel_apart() {
  local loader=/lib64/ld-linux-x86-64.so.2 beside=./ld-linux-x86-64.so.2
  install -d "$own/boot"
  install -m 755 "$loader" /usr/lib/x86_64-linux-gnu/libc.so.6 "$own/boot/"
  install -m 755 /usr/bin/linux.uml "$own/boot/linux"
  LC_ALL=C sed -i "s#$loader\x00#$beside\x00$(printf '\\x00%.0s' $(seq $((${#loader} - ${#beside}))))#" "$own/boot/linux"
  rm /usr/bin/linux.uml
}

# Makes the measuring container's image, in the format of `docker save`: programs of this root with their libraries.
pack_measuring_container() {
  local file layer container=/tmp/measure archive=/tmp/archive
  local -a programs=(/bin/sh /usr/bin/sleep /usr/bin/ls /usr/bin/cat /usr/bin/iperf3 /usr/bin/netperf /usr/bin/netserver /usr/bin/ping
    /usr/sbin/ethtool /usr/bin/ip /usr/sbin/tc /usr/bin/stress-ng)
  local -a files=("${programs[@]}" /etc/protocols /etc/services /usr/lib/x86_64-linux-gnu/libgcc_s.so.1)
  while read -r file; do files+=("$file"); done < <(
    for file in "${programs[@]}"; do ldd "$file"; done | grep -o '/[^ ]*[^ :]' | sort -u
  )
  mkdir -p "$container/tmp"
  for file in "${files[@]}"; do
    [[ ! -e $file ]] || cp --parents -L "$file" "$container/"
  done
  mkdir "$archive"
  archived -C "$container" . >"$archive/layer.tar"
  read -r layer _ < <(sha256sum "$archive/layer.tar")
  printf '{"architecture":"amd64","os":"linux","created":"%s","config":{},"rootfs":{"type":"layers","diff_ids":["%s"]}}' \
    "$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)" "sha256:$layer" >"$archive/config.json"
  printf '[{"Config":"config.json","RepoTags":["minigts/measure:latest"],"Layers":["layer.tar"]}]' >"$archive/manifest.json"
  archived -C "$archive" manifest.json config.json layer.tar >"$own/measure.tar"
}

# Makes a tar archive that does not depend on the time.
archived() { tar -c --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner "$@"; }

write_package_lock() {
  # shellcheck disable=SC2016
  dpkg-query -W -f '${Package} ${Version}\n' >"$own/packages.lock"
}

remove_what_nobody_reads() {
  rm -rf /tmp/image /tmp/measure /tmp/archive /var/cache/apt/* /var/cache/debconf/* /var/log/* \
    /usr/share/{doc,man,info,locale,lintian,bug} /usr/lib/python3*/test /usr/share/python3/debpython/__pycache__
}

# Removes the keys of Open vSwitch, which would be public and would differ in each build; users can make their own.
remove_keys() { rm -rf /var/lib/openvswitch/pki /etc/openvswitch-testcontroller/*.pem; }

name_system() {
  echo minigts >/etc/hostname
  echo '127.0.0.1 localhost' >/etc/hosts
  rm -f /etc/resolv.conf
  : >/etc/resolv.conf
}

install_own_programs
install_advice
leave_terminal_to_programs
keep_needed_modules
take_kernel_apart
pack_measuring_container
write_package_lock
remove_what_nobody_reads
remove_keys
name_system
