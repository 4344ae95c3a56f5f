# shellcheck shell=bash
# Plain VXLAN, a full mesh: one interface on each host, whose table says beforehand on which host each container is.
# Variants bare and bare-v6 have no containers: the interface itself has the address, and the hosts' own programs use it.
# Beneath bare-v6 the hosts know each other by their IPv6 addresses; what is inside is the same.

# shellcheck source=provision/overlays/bare.sh
source "$OVERLAYS/bare.sh"

readonly segment=br-vxlan
readonly tunnels=vxlan0

install() {
  if [[ $VARIANT == bare* ]]; then modprobe vxlan; else start_docker --ip-masq=false --bridge=none; fi
}

join() {
  if [[ ! -e /sys/class/net/$tunnels ]]; then
    make_tunnels
    if [[ $VARIANT == bare* ]]; then give_tunnels_an_address; else put_tunnels_into_segment; fi
  fi
}

start() {
  if [[ $VARIANT == bare* ]]; then
    describe_host "$(own_address)" "$OVERLAY_MTU"
    return
  fi
  run_measuring_container none
  plumb_container_into_segment "$(own_address)/16" "$segment"
  enter_container ip link set eth0 address "$(mac_behind "$HOST_INDEX")"
  describe_measuring_container "$(own_address)"
}

leave() {
  local device
  if [[ $VARIANT == bare* ]]; then stop_servers; else take_containers_away; fi
  for device in "$tunnels" "$segment"; do ip link delete "$device" 2>/dev/null || true; done
  stop_docker
}

make_tunnels() {
  local own=$HOST_ADDRESS
  [[ $VARIANT != bare-v6 ]] || own=$HOST_ADDRESS_V6
  modprobe vxlan
  ip link add "$tunnels" mtu "$OVERLAY_MTU" type vxlan id 4096 local "$own" dstport 4789 nolearning
  peer_entries | bridge -batch -
}

put_tunnels_into_segment() {
  modprobe bridge
  ip link add "$segment" type bridge
  ip link set "$tunnels" master "$segment" up
  ip link set "$segment" up
}

give_tunnels_an_address() {
  ip link set "$tunnels" address "$(mac_behind "$HOST_INDEX")" up
  ip address add "$(own_address)/16" dev "$tunnels"
}

# What is for one address goes to its host; what is for all goes to each.
peer_entries() {
  local peer
  local -a there=("${PEER_ADDRESSES[@]}")
  [[ $VARIANT != bare-v6 ]] || there=("${PEER_ADDRESSES_V6[@]}")
  for peer in "${!there[@]}"; do
    echo "fdb add $(mac_behind "${PEER_INDEXES[peer]}") dev $tunnels dst ${there[peer]}"
    echo "fdb append 00:00:00:00:00:00 dev $tunnels dst ${there[peer]}"
  done
}

# Of this host's container; of the host itself in the variants bare.
own_address() { echo "172.31.$((HOST_INDEX / 250)).$((HOST_INDEX % 250 + 1))"; }

# mac_behind INDEX: of what is reached by that host's tunnel.
mac_behind() { printf '02:00:00:00:%02x:%02x' $(($1 / 256)) $(($1 % 256)); }
