#!/bin/bash
# Starts one more container in the overlay network, on the host of the measuring one.
#
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
container=measure-second
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"

run_measuring_container measure
wait_for_servers
describe_measuring_container "$(container_address measure)"
