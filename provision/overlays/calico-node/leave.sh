#!/bin/bash
# Takes the container, Calico's daemons with all they made, and the engine off this host.
#
# Environment: as for node.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/tunnel.sh
source "$here/../tunnel.sh"
# shellcheck source=provision/overlays/calico-node/node.sh
source "$here/node.sh"

docker_to_leave && remove_measuring_container
unplumb_container
stop_daemon confd
stop_daemon bird
stop_daemon felix
remove_what_calico_made
remove_tunnel
stop_etcd
stop_docker
