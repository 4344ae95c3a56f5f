#!/bin/bash
# Makes a tunnel to each neighbour and lets the neighbours tell each other, by OSPF over the tunnels, which containers
# lie behind them.
#
# Environment: MINIGTS_ADDRESS, MINIGTS_INDEX, MINIGTS_LINKS.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/bird.sh
source "$here/../bird.sh"
# shellcheck source=provision/overlays/mesh/segments.sh
source "$here/segments.sh"

make_tunnels
start_bird <<END
protocol static {
  ipv4;
  route $(host_block) blackhole;
}
protocol ospf v2 {
  ecmp no;
  ipv4 {
    import where net ~ [$routes+];
    export where source = RTS_STATIC;
  };
  area 0 {
    interface "mesh-*" { type ptp; hello 1; dead 4; };
  };
}
END
