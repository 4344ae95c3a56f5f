#!/bin/bash
# Joins this host to its neighbours. In the kernel: a tunnel to each, and they tell each other by OSPF over the tunnels
# which containers lie behind them. In user space: a router that does both.
#
# Environment: MINIGTS_VARIANT, MINIGTS_HOST, MINIGTS_ADDRESS, MINIGTS_LEADER, MINIGTS_INDEX, MINIGTS_LINKS; KEY, on all
# but the leader, where the router is in user space.
# Prints, on the leader: KEY, where the router is in user space.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/bird.sh
source "$here/../bird.sh"
# shellcheck source=provision/overlays/mesh/segments.sh
source "$here/segments.sh"
# shellcheck source=provision/overlays/mesh/sleeve.sh
source "$here/sleeve.sh"

if [[ $MINIGTS_VARIANT == fast ]]; then
  make_tunnels
  spread_block_by_ospf "mesh-*"
else
  KEY=${KEY:-$(lab_key)}
  start_router "$(host_block)" "$routes" "$mesh_mtu"
  [[ $MINIGTS_ADDRESS != "$MINIGTS_LEADER" ]] || echo "KEY=$KEY"
fi
