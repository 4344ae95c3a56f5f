#!/bin/bash
# Makes the hosts a Swarm: the leader its only manager, the others workers.
#
# Environment: MINIGTS_ADDRESS, MINIGTS_LEADER (addresses of this host and the leader's), MINIGTS_VARIANT; TOKEN (for
# workers).
# Prints, on the leader: TOKEN=…
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/swarm/node.sh
source "$here/node.sh"

readonly subnet=172.30.0.0/16

swarm_active() { [[ $(swarm_state) == active ]]; }

found_swarm() {
  docker_api POST /swarm/init "$(jq -nc --arg address "$MINIGTS_ADDRESS" \
    '{ListenAddr: "\($address):2377", AdvertiseAddr: $address, DataPathAddr: $address}')" >/dev/null
}

# Internal: without the gateway bridge, since nothing here leaves the lab.
create_network() {
  docker_api POST /networks/create "$(jq -nc --arg name measure --arg subnet "$subnet" --arg variant "$MINIGTS_VARIANT" \
    '{Name: $name, Driver: "overlay", Attachable: true, Internal: true, IPAM: {Config: [{Subnet: $subnet}]},
      Options: (if $variant == "encrypted" then {encrypted: ""} else {} end)}')" >/dev/null
}

join_swarm() {
  docker_api POST /swarm/join "$(jq -nc --arg address "$MINIGTS_ADDRESS" --arg leader "$MINIGTS_LEADER" \
    --arg token "$TOKEN" '{ListenAddr: "\($address):2377", AdvertiseAddr: $address, DataPathAddr: $address,
      RemoteAddrs: ["\($leader):2377"], JoinToken: $token}')" >/dev/null
}

lead() {
  if ! swarm_active; then
    found_swarm
    create_network
  fi
  echo "TOKEN=$(docker_api GET /swarm | jq -r .JoinTokens.Worker)"
}

follow() {
  swarm_active || join_swarm
  wait_until 60 swarm_active || fatal "this host did not become a node of the Swarm: $(tail -n 5 "$engine_log")"
}

if [[ $MINIGTS_ADDRESS == "$MINIGTS_LEADER" ]]; then lead; else follow; fi
