#!/bin/bash
# Takes the container, the bridge with its tunnels and both engines off this host.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/ovs/switch.sh
source "$here/switch.sh"

docker_to_leave && remove_measuring_container && remove_second_container
unplumb_container
ip link delete measure1 2>/dev/null || true
stop_switch "$bridge"
stop_docker
