#!/bin/bash
# Takes the container, the tunnels, the routes and the daemons off this host.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/bird.sh
source "$here/../bird.sh"
# shellcheck source=provision/overlays/mesh/segments.sh
source "$here/segments.sh"
# shellcheck source=provision/overlays/mesh/sleeve.sh
source "$here/sleeve.sh"

docker_to_leave && remove_measuring_container
unplumb_container
stop_bird
remove_tunnels
stop_router
stop_docker
