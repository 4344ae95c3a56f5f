# shellcheck shell=bash
# Sourced by network.sh: the host announces its block of addresses to every other by BGP, as Calico has it: one autonomous
# system, a full mesh of sessions between the hosts' own addresses. As ../calico/overlay.sh has it, of which no other overlay gets
# a file: what lies on hosts of plain labs stays as it was.

# shellcheck source=provision/overlays/bird.sh
source "$OVERLAYS/bird.sh"
# shellcheck source=provision/overlays/tunnel.sh
source "$OVERLAYS/tunnel.sh"

readonly autonomous_system=64512

# announce_block BLOCK: who sources this has a function `encapsulated NAME`: whether packets to that host go through the
# tunnel.
announce_block() { bgp_configuration "$1" | start_bird; }

# make_ipip_tunnel ADDRESS: its own.
make_ipip_tunnel() {
  add_tunnel
  ip link set "$tunnel" mtu "$OVERLAY_MTU" up
  ip address replace "$1/32" dev "$tunnel"
}

bgp_configuration() {
  cat <<END
ipv4 table underlay;
protocol static ways {
  ipv4 { table underlay; };
  $(bgp_ways)
}
protocol static block {
  ipv4;
  route $1 blackhole;
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
$(bgp_sessions)
END
}

# The table in which BIRD looks up how to send to a peer: through the tunnel, or as the underlay does.
bgp_ways() {
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

underlay_way() {
  ip -j route get "$1" | jq -r '.[0] | "route \(.dst)/32 via \(.gateway) dev \"\(.dev)\";"'
}

bgp_sessions() {
  local peer
  for peer in "${!PEER_ADDRESSES[@]}"; do
    echo "protocol bgp peer$peer from mesh { neighbor ${PEER_ADDRESSES[peer]} as $autonomous_system; }"
  done
}
