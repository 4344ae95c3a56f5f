#!/bin/bash
# Takes the container, the network and the Swarm off this host, and stops the engine.
#
# Environment: MINIGTS_VARIANT.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/swarm/node.sh
source "$here/node.sh"

leave_swarm() {
  docker_to_leave || return 0
  remove_measuring_container
  remove_second_container
  wait_until 30 left_swarm || warn "Docker does not leave the Swarm: $(tail -n 5 "$engine_log")"
  # Docker makes it for every node of a Swarm, and would make it again for the next overlay: it is in its own store.
  docker_api DELETE /networks/docker_gwbridge >/dev/null 2>&1 || true
}

left_swarm() {
  docker_api POST '/swarm/leave?force=1' >/dev/null 2>&1
  [[ $(swarm_state) == inactive ]]
}

# What a node keeps of a Swarm that it could not leave in order: with it, it could not join another.
forget_swarm() { rm -rf /var/lib/docker/swarm; }

remove_gateway_bridge() { ip link delete docker_gwbridge 2>/dev/null || true; }

# Docker leaves the tables, and what it had no time to take back.
remove_encryption() {
  local table
  ip xfrm state flush
  ip xfrm policy flush
  for table in filter mangle; do nft delete table ip "$table" 2>/dev/null || true; done
}

leave_swarm
stop_docker
forget_swarm
remove_gateway_bridge
[[ $MINIGTS_VARIANT != encrypted ]] || remove_encryption
