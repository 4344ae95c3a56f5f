#!/bin/bash
# Starts the measuring container on Docker's bridge, which has the leased block, when every host has its lease.
#
# Environment: as for flanneld.sh.
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/flannel/flanneld.sh
source "$here/flanneld.sh"

wait_until 60 every_host_has_lease || fatal "only these hosts have a lease: $(leases | paste -sd' ')"
run_measuring_container bridge
wait_for_servers
describe_measuring_container "$(container_address bridge)"
