#!/bin/bash
# Takes the container, the network and the Swarm off this host, and stops the engine.
#
# Environment: MINIGTS_VARIANT.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"

leave_swarm() {
  docker_answers || return 0
  remove_measuring_container
  remove_second_container
  docker_api POST '/swarm/leave?force=1' >/dev/null 2>&1 || true
  # Docker makes it for every node of a Swarm, and would make it again for the next overlay: it is in its own store.
  docker_api DELETE /networks/docker_gwbridge >/dev/null 2>&1 || true
}

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
remove_gateway_bridge
[[ $MINIGTS_VARIANT != encrypted ]] || remove_encryption
