# shellcheck shell=bash
# Sourced by docker.sh where a host has no container engine, since it is a namespace itself (provider mininet): there
# the measuring container is a network namespace in which the host's own tools run. Takes the place of the functions of
# the same names. What needs a network of Docker's own does not run there: overlay.yaml says so, under `engines`.

readonly measuring_process=/run/minigts/measure.pid

start_docker() { modprobe -a bridge veth vxlan br_netfilter; }

docker_answers() { true; }

stop_docker() { :; }

# In the foreground, so that all of them are one process group.
run_measuring_container() {
  [[ $1 == none ]] || fatal "there is no container engine here for a network '$1'"
  remove_measuring_container
  setsid unshare --net sh -c 'ip link set lo up && { netserver -4 -D & exec iperf3 -s -J; }' &>/dev/null </dev/null &
  echo $! >"$measuring_process"
  wait_until 10 in_own_network "$!" || fatal "the measuring namespace does not start"
}

in_own_network() { [[ -e /proc/$1 && ! /proc/$1/ns/net -ef /proc/self/ns/net ]]; }

remove_measuring_container() {
  local id
  id=$(container_process) || return 0
  kill -9 -- "-$id" 2>/dev/null || true
  wait_until 5 process_gone "$id" || fatal "the measuring namespace does not end"
  rm -f "$measuring_process"
}

container_process() { cat "$measuring_process" 2>/dev/null; }
