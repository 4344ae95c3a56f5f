#!/bin/bash
# Takes the container, the router with its bridge and data path, and the engine off this host.
#
# Environment: as for router.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/weave/router.sh
source "$here/router.sh"

docker_to_leave && remove_measuring_container
unplumb_container
stop_router
stop_docker
