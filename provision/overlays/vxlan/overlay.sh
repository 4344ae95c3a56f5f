# shellcheck shell=bash
# Plain VXLAN, a full mesh: one interface on each host, whose table says beforehand on which host each container is.

readonly segment=br-vxlan
readonly tunnels=vxlan0

join() { [[ -e /sys/class/net/$tunnels ]] || make_segment; }

start() {
  local address=172.31.$((HOST_INDEX / 250)).$((HOST_INDEX % 250 + 1))
  run_measuring_container none
  plumb_container_into_segment "$address/16" "$segment"
  enter_container ip link set eth0 address "$(container_mac "$HOST_INDEX")"
  describe_measuring_container "$address"
}

leave() {
  local device
  take_containers_away
  for device in "$tunnels" "$segment"; do ip link delete "$device" 2>/dev/null || true; done
  stop_docker
}

make_segment() {
  modprobe -a vxlan bridge
  ip link add "$segment" type bridge
  ip link add "$tunnels" mtu "$OVERLAY_MTU" type vxlan id 4096 local "$HOST_ADDRESS" dstport 4789 nolearning
  peer_entries | bridge -batch -
  ip link set "$tunnels" master "$segment" up
  ip link set "$segment" up
}

# What is for one container goes to its host; what is for all goes to each.
peer_entries() {
  local peer
  for peer in "${!PEER_ADDRESSES[@]}"; do
    echo "fdb add $(container_mac "${PEER_INDEXES[peer]}") dev $tunnels dst ${PEER_ADDRESSES[peer]}"
    echo "fdb append 00:00:00:00:00:00 dev $tunnels dst ${PEER_ADDRESSES[peer]}"
  done
}

# container_mac INDEX: of the container on that host.
container_mac() { printf '02:00:00:00:%02x:%02x' $(($1 / 256)) $(($1 % 256)); }
