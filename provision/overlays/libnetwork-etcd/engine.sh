# shellcheck shell=bash
# Sourced by this overlay's scripts: the engine that comes with MINIGTS_PROGRAMS, on the store that the leader keeps.
#
# Environment: MINIGTS_ADDRESS, MINIGTS_HOST, MINIGTS_LEADER, MINIGTS_PROGRAMS.

# In the store a network's containers are told apart by their names.
MINIGTS_CONTAINER=${MINIGTS_CONTAINER:-measure}-$MINIGTS_HOST

# shellcheck source=provision/overlays/docker.sh
source "$(dirname "${BASH_SOURCE[0]}")/../docker.sh"
# shellcheck source=provision/overlays/etcd.sh
source "$(dirname "${BASH_SOURCE[0]}")/../etcd.sh"

# shellcheck disable=SC2034 # docker.sh reads it
readonly engine=(env "LD_LIBRARY_PATH=$MINIGTS_PROGRAMS" "$MINIGTS_PROGRAMS/dockerd")
readonly subnet=172.30.0.0/16

# What the engine wrote down before a power cut it takes for the present when it starts again, and then looks for a
# network namespace that is not there ("could not get network sandbox"). Its containers' ends in the store are let go of
# in start.sh.
start_engine() {
  docker_answers || rm -f /var/lib/docker/network/files/local-kv.db
  start_docker --ip-masq=false --bridge=none "--cluster-store=etcd://$MINIGTS_LEADER:2379" \
    "--cluster-advertise=$MINIGTS_ADDRESS:2376"
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
