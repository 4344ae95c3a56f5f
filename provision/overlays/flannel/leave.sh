#!/bin/bash
# Takes the container, both daemons and the interfaces off this host.
#
# Environment: as for flanneld.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/flannel/flanneld.sh
source "$here/flanneld.sh"

docker_to_leave && remove_measuring_container
stop_docker
stop_daemon flanneld
stop_etcd
remove_flannel_interfaces
