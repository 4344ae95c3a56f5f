#!/bin/bash
# Takes the container and the engine off this host.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"

docker_to_leave && remove_measuring_container
stop_docker
