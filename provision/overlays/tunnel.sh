# shellcheck shell=bash
# Sourced by overlays whose packets leave by the kernel's own IP-in-IP interface.

readonly tunnel=tunl0

# The interface comes with its module, but not in every namespace of a kernel that several hosts share.
add_tunnel() {
  modprobe ipip
  [[ -e /sys/class/net/$tunnel ]] || ip link add "$tunnel" type ipip
}

# One that came with its module stays when it is deleted and goes with the module; that of a kernel that has it built in is
# put back as it was.
remove_tunnel() {
  ip link delete "$tunnel" 2>/dev/null || true
  [[ -e /sys/class/net/$tunnel ]] || return 0
  modprobe -r ipip 2>/dev/null && return
  ip address flush dev "$tunnel"
  ip link set "$tunnel" down
}
