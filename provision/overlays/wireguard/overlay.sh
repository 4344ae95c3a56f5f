# shellcheck shell=bash
# Plain WireGuard, a full mesh: one interface on each host, which has every other host as a peer. Variants bare
# and bare-v6 have no containers: the interface's own address is measured. Beneath bare-v6 the hosts know each other by their
# IPv6 addresses.

# shellcheck source=provision/overlays/bare.sh
source "$OVERLAYS/bare.sh"
# shellcheck source=provision/overlays/wireguard.sh
source "$OVERLAYS/wireguard.sh"

readonly tunnels=wg0

install() {
  if [[ $VARIANT == bare* ]]; then modprobe wireguard; else start_docker --ip-masq=false --bridge=none; fi
}

# Prints, on the leader, SECRET, from which every host knows every key.
join() {
  SECRET=${SECRET:-$(lab_secret)}
  [[ -e /sys/class/net/$tunnels ]] || make_tunnels
  ! is_leader || echo "SECRET=$SECRET"
}

# The interface has the first address of the host's block, its container the second.
start() {
  if [[ $VARIANT == bare* ]]; then
    describe_host "172.31.$HOST_INDEX.1" "$OVERLAY_MTU"
    return
  fi
  run_measuring_container none
  plumb_container_by_route "172.31.$HOST_INDEX.2"
  describe_measuring_container "172.31.$HOST_INDEX.2"
}

leave() {
  if [[ $VARIANT == bare* ]]; then stop_servers; else take_containers_away; fi
  remove_wireguard "$tunnels"
  stop_docker
}

make_tunnels() {
  peers | add_wireguard "$tunnels"
  ip address add "172.31.$HOST_INDEX.1/16" dev "$tunnels"
  ip link set "$tunnels" up
}

# A line for each other host: its name, where it is, and the block of addresses behind it.
peers() {
  local peer
  local -a there=("${PEER_ADDRESSES[@]}")
  [[ $VARIANT != bare-v6 ]] || there=("${PEER_ADDRESSES_V6[@]}")
  for peer in "${!PEER_NAMES[@]}"; do
    echo "${PEER_NAMES[peer]} ${there[peer]} 172.31.${PEER_INDEXES[peer]}.0/24"
  done
}
