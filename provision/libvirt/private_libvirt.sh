#!/bin/bash
# A libvirt of minigts' own: virtlogd and libvirtd in namespaces of their own, of which this is process 1. When it ends,
# by whatever, the kernel ends everything that libvirt has started.
#
#   private_libvirt.sh DIRECTORY [GROUP]     with DIRECTORY/{etc,run,lib,cache,log,pool}; sockets appear in DIRECTORY/run
#
# Whoever may write to libvirtd's socket is root, so it is its owner's alone, as everything is that lies here; with GROUP
# it is open to that group too, as on a desktop. Seen from within the namespaces it lies at /run/libvirt, where everybody
# looks for it.
#
# Must be started by: unshare --mount --net --pid --fork --kill-child --mount-proc. There is no route out of here.
set -euo pipefail
umask 077

readonly directory=$1 group=${2:-}

# The daemons' paths are built in; here they lead into the directory.
lead_paths_here() {
  local name target
  for name in etc:/etc/libvirt run:/run/libvirt lib:/var/lib/libvirt cache:/var/cache/libvirt log:/var/log/libvirt; do
    target=${name#*:}
    mkdir -p "$directory/${name%%:*}" "$target"
    mount --bind "$directory/${name%%:*}" "$target"
  done
}

configure() {
  cat >"$directory/etc/qemu.conf" <<'END'
user = "root"
group = "root"
security_driver = "none"
cgroup_controllers = []
namespaces = []
END
  local perms=0700
  [[ -z $group ]] || perms=0770
  cat >"$directory/etc/libvirtd.conf" <<END
auth_unix_ro = "none"
auth_unix_rw = "none"
unix_sock_group = "${group:-root}"
unix_sock_ro_perms = "$perms"
unix_sock_rw_perms = "$perms"
unix_sock_admin_perms = "0700"
END
  : >"$directory/etc/virtlogd.conf"
  [[ -z $group ]] || open_to_group
}

# To go through, not to look around.
open_to_group() {
  chgrp "$group" "$directory/run"
  chmod 0710 "$directory/run"
}

start_daemons() {
  mount -t sysfs sysfs /sys # without it the machine's own interfaces are seen
  ip link set lo up
  sysctl -qw net.ipv6.conf.default.disable_ipv6=1 || true
  virtlogd -f "$directory/etc/virtlogd.conf" -p "$directory/run/virtlogd.pid" &
  libvirtd -f "$directory/etc/libvirtd.conf" -p "$directory/run/libvirtd.pid" &
}

lead_paths_here
configure
start_daemons
# Collects what ends; ends itself when one of the two daemons has.
wait -n
