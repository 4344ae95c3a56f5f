#!/bin/bash
# Announces this host's block of addresses to the neighbours by OSPF, and learns theirs.
#
# Environment: MINIGTS_ADDRESS, MINIGTS_INDEX.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/bird.sh
source "$here/../bird.sh"

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
    interface "eth*" { type ptp; hello 1; dead 4; };
  };
}
END
