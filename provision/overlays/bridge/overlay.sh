# shellcheck shell=bash
# Docker's own bridge, in which this host's containers have a /24, and the proxy of published ports or Docker's NAT.

published=

# Docker as it comes has both: NAT for what other hosts ask, and for what this one asks of itself; the proxy for the rest.
install() {
  local filtering=()
  if translates; then filtering=(--iptables=true --ip-masq=true); else filtering=(--ip-masq=false); fi
  start_docker --userland-proxy=true "${filtering[@]}" --bip="$(block "$HOST_INDEX" 1)/24"
}

translates() { [[ $VARIANT == nat ]]; }

# The way back to the containers of other hosts: by route, in place of masquerading.
join() {
  translates && return
  local peer via
  for peer in "${!PEER_ADDRESSES[@]}"; do
    via=$(gateway "${PEER_ADDRESSES[peer]}")
    [[ -z $via ]] || ip route replace "$(block "${PEER_INDEXES[peer]}" 0)/24" via "$via"
  done
}

# With iperf3's port published on the host, at whose address it is asked.
start() {
  local own
  published=$(iperf3_ports)
  run_measuring_container bridge
  own=$(container_address)
  describe_measuring_container "$own" | grep -v ^ADDRESS=
  echo "ADDRESS=$HOST_ADDRESS"
  echo "OWN=$own"
}

# Without published ports.
second() {
  name_second_container
  start_on_network bridge
}

leave() {
  take_containers_away
  stop_docker
  ip link delete docker0 2>/dev/null || true
  remove_routes
  ! translates || remove_translation
}

# Docker leaves its tables, and nobody else has any on this host.
remove_translation() {
  local table
  for table in filter nat; do nft delete table ip "$table" 2>/dev/null || true; done
}

# block INDEX NUMBER: that address in the block of that host's containers.
block() { echo "172.29.$1.$2"; }

# gateway PEER: the neighbour by which it is reached.
gateway() { ip -j -4 route get "$1" 2>/dev/null | jq -r '.[0].gateway // empty'; }

further_host_settings() { [[ -z $published ]] || printf ', "PortBindings": %s' "$published"; }

further_settings() { [[ -z $published ]] || printf ', "ExposedPorts": {"5201/tcp": {}, "5201/udp": {}}'; }

# UDP is published on the address that clients ask: the proxy answers from whichever it likes, if it listens on all.
iperf3_ports() {
  printf '{"5201/tcp": [{"HostPort": "5201"}], "5201/udp": [{"HostIp": "%s", "HostPort": "5201"}]}' "$HOST_ADDRESS"
}

remove_routes() {
  ip -4 route show proto boot | awk '/^172\.29\./ { print $1 }' | while read -r network; do
    ip route delete "$network"
  done
}
