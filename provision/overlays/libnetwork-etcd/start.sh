#!/bin/bash
# Starts the measuring container in the overlay network.
#
# Environment: as for engine.sh.
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/libnetwork-etcd/engine.sh
source "$here/engine.sh"

let_go
run_measuring_container measure
wait_for_servers
describe_measuring_container "$(container_address measure)"
