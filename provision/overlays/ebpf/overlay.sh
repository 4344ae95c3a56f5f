# shellcheck shell=bash
# An eBPF data path: what leaves a container is carried by a program at its veth, what comes by the tunnel by the same
# program there, past bridge, netfilter and the host's forwarding. Which host has which containers, the hosts' routes say.

readonly tunnel=vxlan-ebpf

join() {
  [[ -e /sys/class/net/$tunnel ]] || make_tunnel
  ways_to_peers | ip -batch -
}

# The program needs its MAC address; whoever has the kernel's forwarding finds it by ARP.
start() {
  local address
  address=$(block_address "$HOST_INDEX" 2)
  run_measuring_container none
  plumb_container_by_route "$address"
  # shellcheck disable=SC2154 # docker.sh has it
  ip neighbour replace "$address" dev "$container_port" \
    lladdr "$(enter_container ip -j link show eth0 | jq -r '.[0].address')" nud permanent
  carry "$container_port"
  describe_measuring_container "$address"
}

leave() {
  take_containers_away
  ip link delete "$tunnel" 2>/dev/null || true
  stop_docker
}

# It gets with each packet where that goes.
make_tunnel() {
  modprobe vxlan
  ip link add "$tunnel" mtu "$OVERLAY_MTU" type vxlan external dstport 4789
  ip link set "$tunnel" up
  carry "$tunnel"
}

# carry INTERFACE: by the program, whatever comes in there.
carry() {
  tc qdisc replace dev "$1" clsact
  tc filter replace dev "$1" ingress pref 1 handle 1 bpf direct-action object-file "$PROGRAMS/datapath.o" section tc/carry
}

ways_to_peers() {
  local peer
  for peer in "${!PEER_ADDRESSES[@]}"; do
    echo "route replace $(block_address "${PEER_INDEXES[peer]}" 0)/24 via ${PEER_ADDRESSES[peer]} dev $tunnel onlink"
  done
}

# block_address INDEX NUMBER: an address of that host's block.
block_address() { echo "172.31.$1.$2"; }
