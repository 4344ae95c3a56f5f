#!/bin/bash
# Starts the measuring container on Docker's bridge, with iperf3's port published on the host.
#
# Environment: MINIGTS_ADDRESS.
# Prints: ADDRESS (the host's), MTU and ENTER of the container, and OWN, its address on the bridge.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"

# UDP is published on the address that clients ask: the proxy answers from whichever it likes, if it listens on all.
container_settings() {
  jq -nc --arg network "$1" --arg address "$MINIGTS_ADDRESS" '{
    Image: "minigts/measure",
    Cmd: ["/bin/sh", "-c", "netserver -4 && exec iperf3 -s"],
    ExposedPorts: {"5201/tcp": {}, "5201/udp": {}},
    HostConfig: {
      NetworkMode: $network, Privileged: true, LogConfig: {Type: "none"},
      PortBindings: {"5201/tcp": [{HostPort: "5201"}], "5201/udp": [{HostIp: $address, HostPort: "5201"}]}
    }
  }'
}

run_measuring_container bridge
wait_for_servers
own=$(container_address bridge)
describe_measuring_container "$own" | grep -v ^ADDRESS=
echo "ADDRESS=$MINIGTS_ADDRESS"
echo "OWN=$own"
