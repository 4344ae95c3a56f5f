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

# The engine answers questions about its gossip at a port of the loopback interface (engine.json), once it is told to.
diagnose() { curl -sf "http://127.0.0.1:2376/$1"; }

# Nodes that join at the same time may miss each other, and Docker compares lists every 30 s only: who misses one compares
# his own with the leader's, who was there before all others.
every_node_met() {
  local met
  met=$(diagnose 'clusterpeers?json' | jq .details.size)
  ((met == $(wc -w <<<"$MINIGTS_HOSTS"))) && return
  diagnose "join?members=$MINIGTS_LEADER" >/dev/null
  return 1
}

meet_every_node() {
  kill -HUP "$(cat /run/docker.pid)"
  wait_until 60 every_node_met || fatal "this host has not met every node: $(diagnose clusterpeers)"
}

wait_for_nodes
meet_every_node
run_measuring_container measure
wait_for_servers
describe_measuring_container "$(container_address measure)"
