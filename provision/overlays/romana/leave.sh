#!/bin/bash
# Takes the container, the routes and the daemons off this host.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/bird.sh
source "$here/../bird.sh"
# shellcheck source=provision/overlays/policy.sh
source "$here/../policy.sh"

remove_policy
docker_to_leave && remove_measuring_container
unplumb_container
stop_bird
stop_docker
