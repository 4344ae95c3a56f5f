# shellcheck shell=bash
# Sourced by phase.sh: the measuring container, under Docker. Talks to the engine's socket directly: a call of
# the docker command costs most of a second in an emulated host, one of these some 20 ms.
#
# Docker Engine API: the `docker_*` functions follow its paths; version 1.41 and later.

# An overlay may have other names for them, and another engine; phase `second` has.
container=measure
container_port=measure0
engine=(dockerd)
readonly second_container=measure-second
readonly second_port=measure1
readonly gateway=169.254.1.1
readonly engine_log=/var/log/dockerd.log
readonly engine_deadline_s=60

# docker_api METHOD PATH [JSON]: the answer on stdout; fails with the engine's own words.
docker_api() {
  local method=$1 path=$2 body=${3:-} answer code
  answer=$(curl -sS --unix-socket /run/docker.sock -X "$method" -H 'Content-Type: application/json' \
    ${body:+--data "$body"} -w '\n%{http_code}' "http://docker$path") || return 1
  code=${answer##*$'\n'}
  answer=${answer%$'\n'*}
  if ((code >= 400)); then
    warn "docker: $method $path: $(jq -r '.message // .' <<<"$answer" 2>/dev/null || echo "$answer")"
    return 1
  fi
  printf '%s\n' "$answer"
}

# start_docker FLAG…: the engine, if it does not run yet.
start_docker() {
  docker_answers && return
  modprobe -a overlay bridge veth vxlan br_netfilter ip_vs
  setsid "${engine[@]}" --userland-proxy=false --iptables=false --ip6tables=false "$@" >>"$engine_log" 2>&1 </dev/null &
  wait_until "$engine_deadline_s" docker_answers ||
    fatal "the Docker engine did not start within $engine_deadline_s s: $(engine_complaint)"
}

engine_complaint() { tail -n 5 "$engine_log"; }

docker_answers() {
  [[ -S /run/docker.sock ]] && curl -sf -o /dev/null --unix-socket /run/docker.sock http://docker/_ping
}

# docker_to_leave: whether there is an engine to take things off. One that was killed is started again: its containers
# run on without it, and only an engine takes them away.
docker_to_leave() {
  docker_answers && return
  [[ -e /run/docker.pid ]] && (start_docker --ip-masq=false --bridge=none)
}

stop_docker() {
  local id
  id=$(cat /run/docker.pid 2>/dev/null) || return 0
  kill "$id" 2>/dev/null || true
  wait_until 30 process_gone "$id" || kill -9 "$id"
  rm -f /run/docker.pid
}

process_gone() { [[ ! -d /proc/$1 ]]; }

# run_measuring_container NETWORK: in that network, with the servers of the measuring tools inside. Starting it can fail
# while the network is still being made known to this host: then it is made anew.
run_measuring_container() {
  local network=$1 attempt
  for attempt in 1 2 3 4 5; do
    remove_measuring_container
    if docker_api POST "/containers/create?name=$container" "$(container_settings "$network")" >/dev/null &&
      docker_api POST "/containers/$container/start" >/dev/null; then
      return
    fi
    warn "attempt $attempt to start container $container failed"
    sleep "$attempt"
  done
  fatal "container $container does not start: $(engine_complaint)"
}

# Privileged, so that offloads can be switched inside.
container_settings() {
  jq -nc --arg network "$1" '{
    Image: "minigts/measure",
    Cmd: ["/bin/sh", "-c", "netserver -4 && exec iperf3 -s -J"],
    HostConfig: {NetworkMode: $network, Privileged: true, LogConfig: {Type: "none"}}
  }'
}

remove_measuring_container() { remove_container "$container"; }

remove_container() { docker_api DELETE "/containers/$1?force=1" >/dev/null 2>&1 || true; }

# name_second_container: from now on the functions here speak of the second container.
name_second_container() {
  container=$second_container
  container_port=$second_port
}

# take_containers_away: with what plumbing has put onto this host.
take_containers_away() {
  docker_to_leave && remove_measuring_container && remove_container "$second_container"
  unplumb_container
}

# start_on_network NETWORK: the measuring container in a network of Docker's, described.
start_on_network() {
  run_measuring_container "$1"
  describe_measuring_container "$(container_address "$1")"
}

# The address that Docker gave the container in NETWORK.
container_address() {
  docker_api GET "/containers/$container/json" |
    jq -r --arg network "$1" '.NetworkSettings.Networks[$network].IPAddress'
}

# The process id of the container's first process.
container_process() { docker_api GET "/containers/$container/json" | jq -r .State.Pid; }

# enter_container COMMAND…: this host's program, in the container's network.
enter_container() { nsenter --target "$(container_process)" --net "$@"; }

# describe_measuring_container ADDRESS: once its servers listen, where it can be reached and entered.
describe_measuring_container() {
  local address=$1 id
  wait_for_servers
  id=$(container_process)
  echo "ADDRESS=$address"
  echo "MTU=$(nsenter --target "$id" --net ip -j -4 address |
    jq --arg address "$address" '.[] | select(.addr_info[].local == $address).mtu')"
  echo "ENTER=$id"
}

# For a container without a network of Docker's: an interface eth0 in it, joined to $container_port on this host.
plumb_container() {
  # A container that was removed may still be holding the name.
  ip link delete "$container_port" 2>/dev/null || true
  ip link add "$container_port" mtu "$OVERLAY_MTU" type veth peer name eth0 mtu "$OVERLAY_MTU" netns "$(container_process)"
  ip link set "$container_port" up
}

# plumb_container_into_segment ADDRESS/PREFIX [BRIDGE]: the same, as one of many in a shared segment.
plumb_container_into_segment() {
  plumb_container
  [[ -z ${2:-} ]] || ip link set "$container_port" master "$2"
  enter_container ip -batch - <<<"
address add $1 dev eth0
link set eth0 up"
}

# plumb_container_by_route ADDRESS: the same, routed. The container has one /32 and sends everything to a gateway address
# that belongs to nobody and that the host answers ARP for, as Calico does it.
plumb_container_by_route() {
  local address=$1
  plumb_container
  sysctl -qw "net.ipv4.conf.$container_port.proxy_arp=1" "net.ipv4.neigh.$container_port.proxy_delay=0"
  give_gateway_a_way
  ip route replace "$address" dev "$container_port"
  enter_container ip -batch - <<<"
address add $address/32 dev eth0
link set eth0 up
route add $gateway dev eth0 scope link
route add default via $gateway dev eth0"
}

# The kernel answers ARP for addresses that it would itself send elsewhere, and a lab's hosts have no default route.
give_gateway_a_way() { ip route replace "$gateway" dev lo; }

unplumb_container() {
  local port
  for port in "$container_port" "$second_port"; do ip link delete "$port" 2>/dev/null || true; done
  ip route delete "$gateway" dev lo 2>/dev/null || true
}

# Until the tools' servers listen inside: netserver on 12865, iperf3 on 5201.
wait_for_servers() {
  local id
  id=$(container_process)
  wait_until 30 servers_listen "$id" || fatal "the servers in the measuring container do not listen"
}

servers_listen() {
  nsenter --target "$1" --net ss -Hltn 'sport = 12865 or sport = 5201' | awk 'END { exit NR < 2 }'
}

if [[ $HOST_ENGINE == namespace ]]; then
  # shellcheck source=provision/overlays/namespace.sh
  source "$OVERLAYS/namespace.sh"
fi
