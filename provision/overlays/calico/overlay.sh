# shellcheck shell=bash
# Calico's data path: this host's block of addresses is announced to every other host by BGP. VARIANT says when packets to
# other hosts are encapsulated: always, cross-subnet, never.

# shellcheck source=provision/overlays/bird.sh
source "$OVERLAYS/bird.sh"
# shellcheck source=provision/overlays/tunnel.sh
source "$OVERLAYS/tunnel.sh"

readonly autonomous_system=64512

join() {
  [[ $VARIANT == never ]] || make_tunnel
  configuration | start_bird
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
  prove_encapsulation "$(encapsulation_to "${PEER:?}")"
  prove_mtu
}

leave() {
  take_containers_away
  stop_bird
  remove_tunnel
  stop_docker
}

# A block of 64 addresses, as Calico gives out.
calico_block() { echo "$(calico_address 0)/26"; }

# calico_address NUMBER: in this host's block.
calico_address() { echo "172.31.$((HOST_INDEX / 4)).$((HOST_INDEX % 4 * 64 + $1))"; }

make_tunnel() {
  add_tunnel
  ip link set "$tunnel" mtu "$OVERLAY_MTU" up
  ip address replace "$(calico_address 0)/32" dev "$tunnel"
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
      echo "route $address/32 via $address dev \"$tunnel\" onlink;"
    else
      underlay_way "$address"
    fi
  done
}

# encapsulated NAME: whether packets to that host are.
encapsulated() {
  case $VARIANT in
  always) true ;;
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
