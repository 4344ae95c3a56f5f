# shellcheck shell=bash
# Sourced by overlays that put containers onto a link itself, by one of Docker's drivers: the container is one more
# address on the segment. So all hosts must be on one segment.

# join_segment DRIVER: a network of Docker's on this host's link, by that driver.
join_segment() {
  local port
  port=$(only_port)
  modprobe "$1"
  network_exists || create_segment_network "$port" "$1"
}

start() { start_on_network measure; }

leave() {
  # shellcheck disable=SC2154 # docker.sh names it
  docker_to_leave && remove_measuring_container && remove_container "$second_container" &&
    docker_api DELETE /networks/measure >/dev/null
  stop_docker
}

create_segment_network() {
  local port=$1 driver=$2 network
  network=$(segment_of "$port")
  docker_api POST /networks/create "$(jq -nc --arg driver "$driver" --arg port "$port" --arg network "$network" \
    --arg range "$(container_range "$network")" \
    '{Name: "measure", Driver: $driver, Options: {parent: $port},
      IPAM: {Config: [{Subnet: $network, IPRange: $range}]}}')" >/dev/null
}

network_exists() { docker_api GET /networks/measure >/dev/null 2>&1; }

# Fails unless the network is two hosts with one link; prints the link's interface.
only_port() {
  ((${#LINK_INTERFACES[@]} == 1 && ${#PEER_NAMES[@]} == 1)) ||
    fatal "containers on a segment reach only that segment: this overlay needs two hosts with one link"
  echo "${LINK_INTERFACES[0]}"
}

# segment_of PORT: its subnet, 10.20.0.0/24.
segment_of() { ip -j -4 route show dev "$1" scope link proto kernel | jq -r '.[0].dst'; }

# Eight addresses for each host's container, away from the hosts' own: .64/29, .72/29.
container_range() { echo "${1%.*}.$((64 + HOST_POSITION * 8))/29"; }
