# shellcheck shell=bash
# Calico's data path: this host's block of addresses is announced to every other host by BGP. VARIANT says when packets to
# other hosts are encapsulated: always, cross-subnet, never; with wireguard they are always encrypted, and never in IP-in-IP.

# shellcheck source=provision/overlays/bird.sh
source "$OVERLAYS/bird.sh"
# shellcheck source=provision/overlays/tunnel.sh
source "$OVERLAYS/tunnel.sh"
# shellcheck source=provision/overlays/wireguard.sh
source "$OVERLAYS/wireguard.sh"

readonly autonomous_system=64512
readonly encrypted=wireguard.cali

# Prints, on the leader and with wireguard, SECRET, from which every host knows every key.
join() {
  [[ $VARIANT != wireguard ]] || SECRET=${SECRET:-$(lab_secret)}
  [[ $VARIANT == never ]] || make_tunnel
  configuration | start_bird
  [[ $VARIANT != wireguard ]] || ! is_leader || echo "SECRET=$SECRET"
}

# Behind a route of its own, when there is a way to every host's block.
start() {
  local address
  address=$(calico_address 1)
  run_measuring_container none
  plumb_container_by_route "$address"
  wait_for_routes
  describe_measuring_container "$address"
}

# With cross-subnet it depends on where the peer is.
verify() {
  if [[ $VARIANT != cross-subnet ]]; then
    prove_data_path
    return
  fi
  prove_encapsulation "$(encapsulation_to "${PEER:?}")"
  prove_mtu
}

leave() {
  take_containers_away
  stop_bird
  remove_tunnel
  remove_wireguard "$encrypted"
  stop_docker
}

# calico_block [INDEX]: a block of 64 addresses, as Calico gives out: that of the host with this number, or of this host.
calico_block() { echo "$(calico_address 0 "$@")/26"; }

# calico_address NUMBER [INDEX]: in such a block.
calico_address() { echo "172.31.$((${2:-$HOST_INDEX} / 4)).$((${2:-$HOST_INDEX} % 4 * 64 + $1))"; }

make_tunnel() {
  if [[ $VARIANT != wireguard ]]; then
    add_tunnel
  elif [[ ! -e /sys/class/net/$encrypted ]]; then
    blocks_of_peers | add_wireguard "$encrypted"
  fi
  ip link set "$(tunnel_interface)" mtu "$OVERLAY_MTU" up
  ip address replace "$(calico_address 0)/32" dev "$(tunnel_interface)"
}

tunnel_interface() { if [[ $VARIANT == wireguard ]]; then echo "$encrypted"; else echo "$tunnel"; fi; }

blocks_of_peers() {
  local peer
  for peer in "${!PEER_NAMES[@]}"; do
    echo "${PEER_NAMES[peer]} ${PEER_ADDRESSES[peer]} $(calico_block "${PEER_INDEXES[peer]}")"
  done
}

configuration() {
  cat <<END
ipv4 table underlay;
protocol static ways {
  ipv4 { table underlay; };
  $(ways_to_peers)
}
protocol static block {
  ipv4;
  route $(calico_block) blackhole;
}
template bgp mesh {
  local $HOST_ADDRESS as $autonomous_system;
  multihop;
  connect delay time 1;
  connect retry time 2;
  error wait time 1, 4;
  hold time 9;
  ipv4 {
    igp table underlay;
    import all;
    export where source = RTS_STATIC;
    next hop self;
  };
}
$(sessions)
END
}

# The table in which BIRD looks up how to send to a peer: through the tunnel, or as the underlay does.
ways_to_peers() {
  local peer address
  for peer in "${!PEER_NAMES[@]}"; do
    address=${PEER_ADDRESSES[peer]}
    if encapsulated "${PEER_NAMES[peer]}"; then
      echo "route $address/32 via $address dev \"$(tunnel_interface)\" onlink;"
    else
      underlay_way "$address"
    fi
  done
}

# encapsulated NAME: whether packets to that host are.
encapsulated() {
  case $VARIANT in
  always | wireguard) true ;;
  cross-subnet) ! is_neighbour "$1" ;;
  never) false ;;
  esac
}

encapsulation_to() { if ip route get "$1" | grep "dev $tunnel" >/dev/null; then echo ipip; else echo none; fi; }

underlay_way() {
  ip -j route get "$1" | jq -r '.[0] | "route \(.dst)/32 via \(.gateway) dev \"\(.dev)\";"'
}

sessions() {
  local peer
  for peer in "${!PEER_ADDRESSES[@]}"; do
    echo "protocol bgp peer$peer from mesh { neighbor ${PEER_ADDRESSES[peer]} as $autonomous_system; }"
  done
}
