#!/bin/bash
# Makes the bridge, with a VXLAN tunnel to every other host.
#
# Environment: MINIGTS_ADDRESS, MINIGTS_PEERS.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/ovs/switch.sh
source "$here/switch.sh"

make_bridge() {
  ovs-vsctl --may-exist add-br "$bridge" -- set-fail-mode "$bridge" standalone
  ip link set "$bridge" up
}

# Every host has a tunnel to every other, and protected ports do not forward to each other: so a frame crosses one
# tunnel, and there are no loops.
make_tunnels() {
  local peer number=0
  local -a commands=()
  for peer in $MINIGTS_PEERS; do
    commands+=(-- --may-exist add-port "$bridge" "tunnel$number"
      -- set port "tunnel$number" protected=true
      -- set interface "tunnel$number" type=vxlan "options:local_ip=$MINIGTS_ADDRESS" "options:remote_ip=$peer"
      options:key=4097)
    number=$((number + 1))
  done
  ovs-vsctl --no-wait "${commands[@]}"
}

make_bridge
make_tunnels
