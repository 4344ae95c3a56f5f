#!/bin/bash
# Starts the engine on the store; the leader makes the network, and the store tells the others of it.
#
# Environment: as for engine.sh; MINIGTS_INDEX, MINIGTS_PEERS.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/libnetwork-etcd/engine.sh
source "$here/engine.sh"

# One engine after the other, in the hosts' order: an engine tries once to join those it finds in the store, and stays
# alone for good when the one it tries has not begun to listen for gossip.
wait_for_the_one_before() {
  local -a peers
  local before
  read -ra peers <<<"$MINIGTS_PEERS"
  before=${peers[MINIGTS_INDEX - 1]}
  wait_until 120 gossips "$before" || fatal "the engine of $before does not listen for gossip"
}

gossips() { (exec 3<>"/dev/tcp/$1/7946") 2>/dev/null; }

((MINIGTS_INDEX == 0)) || wait_for_the_one_before
start_engine
if [[ $MINIGTS_ADDRESS == "$MINIGTS_LEADER" ]]; then
  network_known || create_network
else
  wait_until 60 network_known || fatal "the store has not told of the network: $(tail -n 5 "$engine_log")"
fi
