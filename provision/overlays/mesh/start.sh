#!/bin/bash
# Starts the measuring container behind a route of its own, when there is a way to every host's block.
#
# Environment: MINIGTS_VARIANT, MINIGTS_INDEX, MINIGTS_HOSTS.
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/bird.sh
source "$here/../bird.sh"
# shellcheck source=provision/overlays/mesh/segments.sh
source "$here/segments.sh"

address=172.31.$MINIGTS_INDEX.2

run_measuring_container none
plumb_container_by_route "$address" "$mesh_mtu"
[[ $MINIGTS_VARIANT != fast ]] || wait_for_routes
wait_for_servers
describe_measuring_container "$address"
