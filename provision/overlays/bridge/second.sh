#!/bin/bash
# Starts one more container on Docker's bridge, without published ports.
#
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
MINIGTS_CONTAINER=measure-second
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"

run_measuring_container bridge
wait_for_servers
describe_measuring_container "$(container_address bridge)"
