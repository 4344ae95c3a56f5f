#!/bin/bash
# Takes the container, the network and the engine off this host.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"

docker_answers && remove_measuring_container && docker_api DELETE /networks/measure >/dev/null
stop_docker
