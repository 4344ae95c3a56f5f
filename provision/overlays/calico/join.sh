#!/bin/bash
# Announces this host's block of addresses to every other host by BGP, and learns theirs.
#
# Environment: as for path.sh; MINIGTS_ADDRESS, MINIGTS_INDEX.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/bird.sh
source "$here/../bird.sh"
# shellcheck source=provision/overlays/calico/path.sh
source "$here/path.sh"

readonly autonomous_system=64512

make_tunnel() {
  [[ $MINIGTS_VARIANT == never ]] && return
  modprobe ipip
  ip link set "$tunnel" mtu "$(calico_mtu)" up
  ip address replace "$(calico_address 0)/32" dev "$tunnel"
}

# The table in which BIRD looks up how to send to a peer: through the tunnel, or as the underlay does.
ways_to_peers() {
  local peer
  for peer in $MINIGTS_PEERS; do
    if encapsulated "$peer"; then
      echo "route $peer/32 via $peer dev \"$tunnel\" onlink;"
    else
      underlay_way "$peer"
    fi
  done
}

underlay_way() {
  ip -j route get "$1" | jq -r '.[0] | "route \(.dst)/32 via \(.gateway) dev \"\(.dev)\";"'
}

sessions() {
  local peer number=0
  for peer in $MINIGTS_PEERS; do
    echo "protocol bgp peer$number from mesh { neighbor $peer as $autonomous_system; }"
    number=$((number + 1))
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
  local $MINIGTS_ADDRESS as $autonomous_system;
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

make_tunnel
configuration | start_bird
