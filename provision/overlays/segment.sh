# shellcheck shell=bash
# Sourced by overlays that put containers onto a link itself, by one of Docker's drivers: the container is one more
# address on the segment. So all hosts must be on one segment.
#
# Environment: MINIGTS_LINKS, MINIGTS_HOSTS, MINIGTS_INDEX.

# shellcheck source=provision/overlays/docker.sh
source "$(dirname "${BASH_SOURCE[0]}")/docker.sh"

# join_segment DRIVER: a network of Docker's on this host's link, by that driver.
join_segment() {
  local port
  port=$(only_port)
  modprobe "$1"
  network_exists || create_segment_network "$port" "$1"
}

# The measuring container; prints its ADDRESS, MTU and ENTER.
start_on_segment() {
  run_measuring_container measure
  wait_for_servers
  describe_measuring_container "$(container_address measure)"
}

leave_segment() {
  docker_to_leave && remove_measuring_container && docker_api DELETE /networks/measure >/dev/null
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

# Fails unless the lab is two hosts with one link; prints the link's interface.
only_port() {
  local -a links
  read -ra links <<<"$MINIGTS_LINKS"
  ((${#links[@]} == 1 && $(wc -w <<<"$MINIGTS_HOSTS") == 2)) ||
    fatal "containers on a segment reach only that segment: this overlay needs two hosts with one link"
  echo "${links[0]%%:*}"
}

# segment_of PORT: its subnet, 10.20.0.0/24.
segment_of() { ip -j -4 route show dev "$1" scope link proto kernel | jq -r '.[0].dst'; }

# Eight addresses for each host's container, away from the hosts' own: .64/29, .72/29.
container_range() { echo "${1%.*}.$((64 + MINIGTS_INDEX * 8))/29"; }
