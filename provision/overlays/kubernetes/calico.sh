# shellcheck shell=bash
# Sourced by network.sh: Calico's data path. Each node's block is announced by BGP, and packets to other nodes go through
# the kernel's IP-in-IP. No bridge: each pod has a route of its own, by the plugin `ptp`.

start_calico() {
  make_ipip_tunnel "172.31.$HOST_INDEX.0"
  announce_block "$(host_block)"
}

encapsulated() { true; }
