#!/bin/bash
# Starts the engine on the store; the leader makes the network, and the store tells the others of it.
#
# Environment: as for engine.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/libnetwork-etcd/engine.sh
source "$here/engine.sh"

start_engine
if [[ $MINIGTS_ADDRESS == "$MINIGTS_LEADER" ]]; then
  network_known || create_network
else
  wait_until 60 network_known || fatal "the store has not told of the network: $(tail -n 5 "$engine_log")"
fi
