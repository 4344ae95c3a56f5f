#!/bin/bash
# Starts the measuring container in the overlay network, when every node is ready for it.
#
# Environment: MINIGTS_ADDRESS, MINIGTS_LEADER, MINIGTS_HOSTS (names of all hosts).
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"

# A container that is attached while a node is still joining fails after 20 s, so the leader, which starts before the
# others do, waits for all of them.
every_node_ready() {
  local ready
  ready=$(docker_api GET /nodes | jq '[.[] | select(.Status.State == "ready")] | length')
  ((ready == $(wc -w <<<"$MINIGTS_HOSTS")))
}

wait_for_nodes() {
  [[ $MINIGTS_ADDRESS != "$MINIGTS_LEADER" ]] || wait_until 60 every_node_ready ||
    fatal "not every node is ready: $(docker_api GET /nodes | jq -r '.[] | "\(.Description.Hostname) \(.Status.State)"')"
}

wait_for_nodes
run_measuring_container measure
wait_for_servers
describe_measuring_container "$(container_address measure)"
