# shellcheck shell=bash
# Docker's own overlay in a Swarm: the leader is its only manager, the others are workers.

readonly subnet=172.30.0.0/16

# Prints, on the leader, TOKEN, by which the others join.
join() { if is_leader; then lead; else follow; fi; }

start() {
  wait_for_nodes
  keep_distance
  start_on_network measure
}

leave() {
  leave_swarm
  stop_docker
  forget_swarm
  ip link delete docker_gwbridge 2>/dev/null || true
  [[ $VARIANT != encrypted ]] || remove_encryption
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
  wait_until 60 swarm_active || fatal "this host did not become a node of the Swarm: $(engine_complaint)"
}

swarm_active() { [[ $(swarm_state) == active ]]; }

# inactive, pending, active, error or locked: Docker Engine API, GET /info.
swarm_state() { docker_api GET /info | jq -r .Swarm.LocalNodeState; }

found_swarm() {
  docker_api POST /swarm/init "$(jq -nc --arg address "$HOST_ADDRESS" \
    '{ListenAddr: "\($address):2377", AdvertiseAddr: $address, DataPathAddr: $address}')" >/dev/null
}

# Internal: without the gateway bridge, since nothing here leaves the lab.
create_network() {
  docker_api POST /networks/create "$(jq -nc --arg name measure --arg subnet "$subnet" --arg variant "$VARIANT" \
    '{Name: $name, Driver: "overlay", Attachable: true, Internal: true, IPAM: {Config: [{Subnet: $subnet}]},
      Options: (if $variant == "encrypted" then {encrypted: ""} else {} end)}')" >/dev/null
}

join_swarm() {
  docker_api POST /swarm/join "$(jq -nc --arg address "$HOST_ADDRESS" --arg leader "$LEADER_ADDRESS" \
    --arg token "$TOKEN" '{ListenAddr: "\($address):2377", AdvertiseAddr: $address, DataPathAddr: $address,
      RemoteAddrs: ["\($leader):2377"], JoinToken: $token}')" >/dev/null
}

# A container that is attached while a node is still joining fails after 20 s, so the leader, which starts before the
# others do, waits for all of them.
wait_for_nodes() {
  ! is_leader || wait_until 60 every_node_ready ||
    fatal "not every node is ready: $(docker_api GET /nodes | jq -r '.[] | "\(.Description.Hostname) \(.Status.State)"')"
}

# Nodes that attach to a network at the same moment do not know of each other yet when each tells the others of its
# container; who misses that waits half a minute for Docker's comparison of tables. So they come one after another.
keep_distance() { is_leader || sleep "$HOST_POSITION"; }

every_node_ready() {
  local ready
  ready=$(docker_api GET /nodes | jq '[.[] | select(.Status.State == "ready")] | length')
  ((ready == $(host_count)))
}

leave_swarm() {
  docker_to_leave || return 0
  take_containers_away
  wait_until 30 left_swarm || warn "Docker does not leave the Swarm: $(engine_complaint)"
  # Docker makes it for every node of a Swarm, and would make it again for the next overlay: it is in its own store.
  docker_api DELETE /networks/docker_gwbridge >/dev/null 2>&1 || true
}

left_swarm() {
  docker_api POST '/swarm/leave?force=1' >/dev/null 2>&1
  [[ $(swarm_state) == inactive ]]
}

# What a node keeps of a Swarm that it could not leave in order: with it, it could not join another.
forget_swarm() { rm -rf /var/lib/docker/swarm; }

# Docker leaves the tables, and what it had no time to take back.
remove_encryption() {
  local table
  ip xfrm state flush
  ip xfrm policy flush
  for table in filter mangle; do nft delete table ip "$table" 2>/dev/null || true; done
}
