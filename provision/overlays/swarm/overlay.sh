# shellcheck shell=bash
# Docker's own overlay in a Swarm: the leader is its only manager, the others are workers.

readonly subnet=172.30.0.0/16
readonly given_out=172.30.128.0/17 # by Docker, to what asks for no address
readonly patience_s=2
own_address=

# Prints, on the leader, TOKEN, by which the others join.
join() { if is_leader; then lead; else follow; fi; }

start() {
  if is_leader; then wait_for_nodes; else wait_for_gossip; fi
  keep_distance
  own_address=172.30.$((HOST_POSITION / 250)).$((HOST_POSITION % 250 + 2))
  start_on_network measure
}

second() {
  name_second_container
  start_on_network measure
}

# A host that does not find all others after some time attaches its container again: whoever does so compares tables
# with all nodes, which Docker else does every half minute, with one of them. One host after the other, since each cuts
# itself off for a moment.
reach() {
  everyone_answers $((patience_s * (HOST_POSITION + 1))) || attach_again
  # shellcheck disable=SC2154 # phase.sh names it
  everyone_answers "$reach_deadline_s" || fatal "$silent did not answer within $reach_deadline_s s"
}

# everyone_answers SECONDS: whether all PEERS do; sets `silent`, the one that does not.
everyone_answers() {
  for silent in $PEERS; do
    wait_until "$1" answers "$silent" || return 1
  done
}

# An engine gives up after 20 s when the Swarm is slow to say yes. Asked again, it may not know the network at once.
attach_again() {
  # shellcheck disable=SC2154 # docker.sh names the container
  docker_api POST /networks/measure/disconnect '{"Container": "'"$container"'"}' >/dev/null
  pause_s=2 wait_until 120 attach || fatal "container $container cannot be attached again: $(engine_complaint)"
}

attach() {
  docker_api POST /networks/measure/connect \
    '{"Container": "'"$container"'", "EndpointConfig": {"IPAMConfig": {"IPv4Address": "'"$ADDRESS"'"}}}' >/dev/null
}

# The address does not depend on who comes first.
further_settings() {
  [[ -z $own_address ]] ||
    printf ', "NetworkingConfig": {"EndpointsConfig": {"measure": {"IPAMConfig": {"IPv4Address": "%s"}}}}' "$own_address"
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
    wait_until 30 remove_ingress || fatal "Docker does not give up its network ingress: $(engine_complaint)"
    create_network
  fi
  echo "TOKEN=$(said Worker "$(docker_api GET /swarm)")"
}

# Who has heard of nobody new for some time joins anew. Of a node that comes the others tell each other by lot; whom nobody
# tells hears of it half a minute later, when two nodes compare their lists. To join is to compare them with the leader.
follow() {
  local quiet_s=20 attempt
  [[ $CLOCK != virtual ]] || quiet_s=3
  if ! swarm_active; then
    join_swarm
    for attempt in 1 2; do
      ! hears_of_every_node $((quiet_s * attempt)) || return 0
      ! wait_until 30 left_swarm || join_swarm
    done
  fi
  wait_for_gossip
}

# hears_of_every_node SECONDS: whether this host comes to know all, before it has heard of nobody new for so long.
hears_of_every_node() {
  local known=0 now deadline=$((SECONDS + $1))
  while now=$(count_known_nodes) && ((now < $(host_count))); do
    ((now == known)) || known=$now deadline=$((SECONDS + $1))
    ((SECONDS < deadline)) || return 1
    sleep 0.5
  done
}

# What asks for a network before every node knows of every other by gossip asks some that do not answer, and waits for
# 30 s.
wait_for_gossip() {
  pause_s=0.5 wait_until 120 knows_every_node || fatal "this host does not know every node of the Swarm: $(engine_complaint)"
}

knows_every_node() { (($(count_known_nodes) >= $(host_count))); }

# Of those since the engine has been started, or has joined last. The engine says whom it knows in its log alone: `Node
# 226cf1dac85c/10.255.0.1, joined gossip cluster`. A node that comes again has another name, and both may be known for a while.
# shellcheck disable=SC2154 # docker.sh names the log
count_known_nodes() {
  awk '/msg="Starting up"|New memberlist node/ { split("", known) }
    match($0, "Node [0-9a-f]+/[^,]*, ") { node = substr($0, RSTART, RLENGTH) }
    /, joined gossip cluster/ { known[node] }
    /, left gossip cluster/ { delete known[node] }
    END {
      for (node in known) addresses[substr(node, index(node, "/"))]
      print length(addresses)
    }' "$engine_log"
}

swarm_active() { [[ $(swarm_state) == active ]]; }

# inactive, pending, active, error or locked: Docker Engine API, GET /info.
swarm_state() { said LocalNodeState "$(docker_api GET /info)"; }

found_swarm() { docker_api POST /swarm/init "{$(addresses)}" >/dev/null; }

addresses() {
  printf '"ListenAddr": "%s:2377", "AdvertiseAddr": "%s", "DataPathAddr": "%s"' \
    "$HOST_ADDRESS" "$HOST_ADDRESS" "$HOST_ADDRESS"
}

# Docker's own network for the published ports of services. A node that compares its tables with another for two networks
# at once mistakes one answer for the other, and waits 30 s for what has come long ago: every node joined it just before
# it attached to ours.
remove_ingress() { docker_api DELETE /networks/ingress &>/dev/null; }

# Internal: without the gateway bridge, since nothing here leaves the lab.
create_network() {
  local options=
  [[ $VARIANT != encrypted ]] || options='"encrypted": ""'
  docker_api POST /networks/create '{"Name": "measure", "Driver": "overlay", "Attachable": true, "Internal": true,
    "IPAM": {"Config": [{"Subnet": "'$subnet'", "IPRange": "'$given_out'"}]}, "Options": {'"$options"'}}' >/dev/null
}

join_swarm() {
  docker_api POST /swarm/join \
    "{$(addresses), \"RemoteAddrs\": [\"$LEADER_ADDRESS:2377\"], \"JoinToken\": \"$TOKEN\"}" >/dev/null || too_far
}

# PATIENCE_S is twice the longest round trip, where that is longer than a second.
too_far() {
  # shellcheck disable=SC2153 # host.sh reads it
  ((PATIENCE_S < 4)) || fatal "Docker gives up joining a Swarm after 20 s of its own, which are too few for this lab's \
round trips of up to $((PATIENCE_S / 2)) s: over more than 2 s no Swarm was seen to join"
  return 1
}

# A container that is attached while a node is still joining fails after 20 s, so the leader, which starts before the
# others do, waits for all of them.
wait_for_nodes() {
  wait_until 60 every_node_ready ||
    fatal "not every node is ready: $(docker_api GET /nodes | jq -r '.[] | "\(.Description.Hostname) \(.Status.State)"')"
  wait_for_gossip
}

# In real time many containers that start at once take longer than Docker waits for an attachment, 20 s. So they come one
# after another.
keep_distance() { is_leader || [[ $CLOCK == virtual ]] || sleep "$HOST_POSITION"; }

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
