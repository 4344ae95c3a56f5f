#!/bin/bash
# Starts the measuring container and attaches it to Weave, when every neighbour is connected by the path that was asked
# for: a connection begins as sleeve and becomes fast when its heartbeats have come through.
#
# Environment: as for router.sh.
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/weave/router.sh
source "$here/router.sh"

address=172.31.$((MINIGTS_INDEX / 250)).$((MINIGTS_INDEX % 250 + 1))

run_measuring_container none
use_iptables
"$MINIGTS_PROGRAMS/weaveutil" attach-container --no-multicast-route "$container" "$weave_bridge" "$address/16"
wait_until 60 every_connection_on_its_path || fatal "not every connection is $(wanted_path): $(connections)"
wait_for_servers
describe_measuring_container "$address"
