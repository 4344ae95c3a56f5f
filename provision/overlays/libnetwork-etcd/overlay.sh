# shellcheck shell=bash
# Docker's engine that comes with PROGRAMS, on the store that the leader keeps.

# shellcheck source=provision/overlays/etcd.sh
source "$OVERLAYS/etcd.sh"

# In the store a network's containers are told apart by their names.
# shellcheck disable=SC2034 # docker.sh reads it
container=measure-$HOST_NAME
# shellcheck disable=SC2034 # docker.sh reads it
engine=(env "LD_LIBRARY_PATH=$PROGRAMS" "$PROGRAMS/dockerd")
readonly subnet=172.30.0.0/16

install() { ! is_leader || start_etcd; }

# The leader makes the network, and the store tells the others of it.
join() {
  ((HOST_POSITION == 0)) || wait_for_the_one_before
  start_engine
  if is_leader; then
    network_known || create_network
  else
    wait_until 60 network_known || fatal "the store has not told of the network: $(engine_complaint)"
  fi
}

start() {
  signal_supervisors CONT
  let_go
  start_on_network measure
  signal_supervisors STOP
}

# The network's last user takes it with him.
leave() {
  signal_supervisors CONT
  take_containers_away
  stop_docker
  stop_etcd
  ip link delete docker_gwbridge 2>/dev/null || true
}

# One engine after the other, in the hosts' order: an engine tries once to join those it finds in the store, and stays
# alone for good when the one it tries has not begun to listen for gossip.
wait_for_the_one_before() {
  local before=${PEER_ADDRESSES[HOST_POSITION - 1]}
  wait_until 120 gossips "$before" || fatal "the engine of $before does not listen for gossip"
}

gossips() { (exec 3<>"/dev/tcp/$1/7946") 2>/dev/null; }

# What the engine wrote down before a power cut it takes for the present when it starts again, and then looks for a
# network namespace that is not there ("could not get network sandbox"). Its containers' ends in the store are let go of
# by let_go.
start_engine() {
  signal_supervisors CONT
  docker_answers || rm -f /var/lib/docker/network/files/local-kv.db
  start_docker --ip-masq=false --bridge=none "--cluster-store=etcd://$LEADER_ADDRESS:2379" \
    "--cluster-advertise=$HOST_ADDRESS:2376"
}

# signal_supervisors SIGNAL: the containers' parents, containerd's shims, have nothing to do while containers run, and would
# spin every half minute. This engine cannot have them clear their memory at once (docker.sh): its own program is what they
# run to give a container its network, and is of a Go that ends then with "failed to set sweep barrier".
signal_supervisors() {
  local id
  [[ $CLOCK == virtual ]] || return 0
  for id in $(pidof containerd-shim-runc-v2); do kill -s "$1" "$id" || true; done
}

# The container's end in the store, which outlives a power cut; the engine gives it up only when the container is gone.
let_go() {
  remove_measuring_container
  docker_api POST /networks/measure/disconnect "$(jq -nc --arg name "$container" '{Container: $name, Force: true}')" \
    >/dev/null 2>&1 || true
}

network_known() { docker_api GET /networks/measure >/dev/null 2>&1; }

# Internal: without the gateway bridge, since nothing here leaves the lab.
create_network() {
  docker_api POST /networks/create "$(jq -nc --arg subnet "$subnet" \
    '{Name: "measure", Driver: "overlay", Internal: true, IPAM: {Config: [{Subnet: $subnet}]}}')" >/dev/null
}
