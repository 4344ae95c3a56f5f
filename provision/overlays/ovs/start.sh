#!/bin/bash
# Starts the measuring container and plugs it into the bridge.
#
# Environment: MINIGTS_INDEX, MINIGTS_MTU; from second.sh, MINIGTS_ADDRESS_BLOCK.
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/ovs/switch.sh
source "$here/switch.sh"

# Outer IP, UDP, VXLAN and inner Ethernet headers.
readonly vxlan_bytes=50
address=172.31.$((${MINIGTS_ADDRESS_BLOCK:-0} + MINIGTS_INDEX / 250)).$((MINIGTS_INDEX % 250 + 1))

plug_container_in() { ovs-vsctl --if-exists del-port "$container_port" -- add-port "$bridge" "$container_port"; }

run_measuring_container none
plumb_container_into_segment "$address/16" "$((MINIGTS_MTU - vxlan_bytes))"
plug_container_in
wait_for_servers
describe_measuring_container "$address"
