#!/bin/bash
# Starts the measuring container in the host's own network.
#
# Environment: MINIGTS_ADDRESS, MINIGTS_MTU.
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"

run_measuring_container host
wait_for_servers
echo "ADDRESS=$MINIGTS_ADDRESS"
echo "MTU=$MINIGTS_MTU"
echo "ENTER=$(container_process)"
