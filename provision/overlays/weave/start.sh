#!/bin/bash
# Starts the measuring container and attaches it to Weave, when every neighbour is connected by the path that was asked
# for: a connection begins as sleeve and becomes fast when its heartbeats have come through.
#
# Environment: as for router.sh.
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/weave/router.sh
source "$here/router.sh"

address=172.31.$((MINIGTS_INDEX / 250)).$((MINIGTS_INDEX % 250 + 1))

# As Weave attaches one. Without checksums of their own, packets that the router takes up in user space would arrive broken.
attach_container() {
  plumb_container_into_segment "$address/16" "$weave_mtu"
  ip link set "$container_port" master "$weave_bridge"
  nsenter --target "$(container_process)" --net ethtool -K eth0 tx off >/dev/null
}

run_measuring_container none
attach_container
wait_until 60 every_connection_on_its_path || fatal "not every connection is $(wanted_path): $(connections)"
wait_for_servers
describe_measuring_container "$address"
