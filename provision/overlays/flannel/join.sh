#!/bin/bash
# Takes a lease on a block of addresses, and starts Docker with it.
#
# Environment: as for flanneld.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/flannel/flanneld.sh
source "$here/flanneld.sh"

start_docker_on_lease() {
  local FLANNEL_SUBNET FLANNEL_MTU
  # shellcheck disable=SC1090
  source "$subnet_file"
  start_docker --ip-masq=false "--bip=$FLANNEL_SUBNET" "--mtu=$FLANNEL_MTU"
}

start_flanneld
start_docker_on_lease
