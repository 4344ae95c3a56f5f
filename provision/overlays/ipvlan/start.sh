#!/bin/bash
# Starts the measuring container on the segment.
#
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"

run_measuring_container measure
wait_for_servers
describe_measuring_container "$(container_address measure)"
