#!/bin/bash
# Takes the container, the engine and the store off this host; the network's last user takes it with him.
#
# Environment: as for engine.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/libnetwork-etcd/engine.sh
source "$here/engine.sh"

docker_to_leave && remove_measuring_container
stop_docker
stop_etcd
ip link delete docker_gwbridge 2>/dev/null || true
