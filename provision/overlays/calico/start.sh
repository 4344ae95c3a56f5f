#!/bin/bash
# Starts the measuring container behind a route of its own, when there is a way to every host's block.
#
# Environment: as for path.sh; MINIGTS_INDEX, MINIGTS_HOSTS, MINIGTS_MTU.
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/bird.sh
source "$here/../bird.sh"
# shellcheck source=provision/overlays/calico/path.sh
source "$here/path.sh"

address=$(calico_address 1)

run_measuring_container none
plumb_container_by_route "$address" "$(calico_mtu)"
wait_for_routes
wait_for_servers
describe_measuring_container "$address"
