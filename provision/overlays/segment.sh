# shellcheck shell=bash
# Sourced by overlays that put containers onto a link itself, by one of Docker's drivers: the container is one more
# address on the segment. So all hosts must be on one segment.
#
# Environment: MINIGTS_LINKS, MINIGTS_HOSTS, MINIGTS_INDEX.

# create_segment_network PORT DRIVER: the network `measure` on that host's link.
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
