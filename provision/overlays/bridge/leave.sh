#!/bin/bash
# Takes the containers, the engine, its bridge and the routes off this host.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"

remove_routes() {
  ip -4 route show proto boot | awk '/^172\.29\./ { print $1 }' | while read -r network; do
    ip route delete "$network"
  done
}

docker_to_leave && remove_measuring_container && remove_second_container
stop_docker
ip link delete docker0 2>/dev/null || true
remove_routes
