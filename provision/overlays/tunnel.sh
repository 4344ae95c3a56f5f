# shellcheck shell=bash
# Sourced by overlays whose packets leave by the kernel's own IP-in-IP interface.

readonly tunnel=tunl0

# The interface comes with its module and goes with it; that of a kernel that has it built in is put back as it was.
remove_tunnel() {
  modprobe -r ipip 2>/dev/null && return
  ip address flush dev "$tunnel"
  ip link set "$tunnel" down
}
