# shellcheck shell=bash
# Sourced by phase.sh: the measuring container, under Docker. Talks to the engine's socket directly: a call of
# the docker command costs most of a second in an emulated host, one of curl some 30 ms, one of nc some 5.
#
# Docker Engine API: the `docker_*` functions follow its paths; version 1.41 and later.

# Go's runtime clears its memory in a thread that spins for as long as another one is at it. In virtual time only an alarm of
# the machine's own time ends that, at a point that no two runs share: so an engine, and what it starts, clears it at once.
engine=(dockerd)
[[ $CLOCK != virtual ]] || engine=(env GODEBUG=gcstoptheworld=2 dockerd)

# An overlay may have other names for them, and another engine; phase `second` has.
container=measure
container_port=measure0
readonly second_container=measure-second
readonly second_port=measure1
readonly gateway=169.254.1.1
readonly engine_log=/var/log/dockerd.log
readonly engine_deadline_s=60

# docker_api METHOD PATH [JSON]: the answer on stdout; fails with the engine's own words. By HTTP 1.0: the engine ends its
# answer by closing the connection.
docker_api() {
  local LC_ALL=C method=$1 path=$2 body=${3:-} request answer code
  printf -v request '%s %s HTTP/1.0\r\nHost: docker\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' \
    "$method" "$path" "${#body}" "$body"
  answer=$(nc -U /run/docker.sock <<<"$request") || return 1
  code=${answer#* }
  code=${code%%[[:space:]]*}
  answer=${answer#*$'\r\n\r\n'}
  if [[ ! $code =~ ^[1-9][0-9]{2}$ ]]; then
    warn "docker: $method $path: no answer"
    return 1
  fi
  if ((code >= 400)); then
    warn "docker: $method $path: $(jq -r '.message // .' <<<"$answer" 2>/dev/null || echo "$answer")"
    return 1
  fi
  printf '%s\n' "$answer"
}

# said KEY JSON: the first string that stands there under that key; nothing where there is none. It starts no program.
said() { [[ ! $2 =~ \"$1\":\"([^\"]*)\" ]] || echo "${BASH_REMATCH[1]}"; }

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
  [[ -S /run/docker.sock ]] && docker_api GET /_ping &>/dev/null
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
  remove_namespaces
}

# remove_namespaces: those of Docker's own networks, which the engine leaves when it was killed, or has no time. Their tunnels
# would hold the port that the next overlay needs; the kernel closes them a moment after it is told to.
remove_namespaces() {
  local each
  for each in /run/docker/netns/*; do
    [[ -e $each ]] || return 0
    umount "$each" 2>/dev/null || true
    rm -f "$each"
  done
  wait_until 30 tunnel_port_free || warn "a tunnel still has port 4789 of this host"
}

# A line of /proc/net/udp (proc(5)): `70: 00000000:12B5 00000000:0000 07 …`; 12B5 is 4789.
tunnel_port_free() { [[ $(</proc/net/udp) != *:12B5\ * ]]; }

process_gone() { [[ ! -d /proc/$1 ]]; }

# run_measuring_container NETWORK: in that network, with the servers of the measuring tools inside. Starting it can fail
# while the network is still being made known to this host: then it is made anew.
run_measuring_container() {
  local network=$1 attempt
  for attempt in 1 2 3 4 5; do
    remove_measuring_container
    if docker_api POST "/containers/create?name=$container" "$(container_settings "$network")" >/dev/null &&
      docker_api POST "/containers/$container/start" >/dev/null; then
      inspect_container
      return
    fi
    warn "attempt $attempt to start container $container failed"
    sleep "$attempt"
  done
  fatal "container $container does not start: $(engine_complaint)"
}

# container_settings NETWORK: what is asked of the engine. Privileged, so that offloads can be switched inside. In no
# network of Docker's: it would start itself once more to set none up, which takes a third of the container's start. The
# servers print into nothing: a pipe that its supervisor does not empty would stop them.
container_settings() {
  local disabled=false
  [[ $1 != none ]] || disabled=true
  printf '{"Image": "minigts/measure", "Cmd": ["/bin/sh", "-c", "netserver -4 && exec iperf3 -s -J >/dev/null 2>&1"],
    "NetworkDisabled": %s, "HostConfig": {"NetworkMode": "%s", "Privileged": true, "LogConfig": {"Type": "none"}%s}%s}' \
    "$disabled" "$1" "$(further_host_settings)" "$(further_settings)"
}

# What an overlay asks for besides, from a comma on.
further_host_settings() { :; }
further_settings() { :; }

remove_measuring_container() {
  inspected=()
  remove_container "$container"
}

remove_container() {
  docker_api DELETE "/containers/$1?force=1" >/dev/null 2>&1 || true
}

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
  describe_measuring_container "$(container_address)"
}

# What the engine said of a container when it was asked last: its name, the process id of its first process, and the
# address that Docker gave it, where it is in a network of Docker's.
inspected=()

inspect_container() {
  local answer
  answer=$(docker_api GET "/containers/$container/json") || return 1
  inspected=("$container")
  [[ ! $answer =~ \"Pid\":([0-9]+) ]] || inspected[1]=${BASH_REMATCH[1]}
  [[ ! $answer =~ \"IPAddress\":\"([0-9.]+)\" ]] || inspected[2]=${BASH_REMATCH[1]}
}

container_address() {
  [[ ${inspected[0]:-} == "$container" ]] || inspect_container
  echo "${inspected[2]:-}"
}

container_process() {
  [[ ${inspected[0]:-} == "$container" ]] || inspect_container
  echo "${inspected[1]}"
}

# enter_container COMMAND…: this host's program, in the container's network.
enter_container() { nsenter --target "$(container_process)" --net "$@"; }

# describe_measuring_container ADDRESS: once its servers listen, where it can be reached and entered.
describe_measuring_container() {
  local id
  wait_for_servers
  id=$(container_process)
  echo "ADDRESS=$1"
  echo "MTU=$(mtu_with "$1" <<<"$(nsenter --target "$id" --net ip -4 address)")"
  echo "ENTER=$id"
}

# mtu_with ADDRESS: of the interface that has it, as `ip address` prints them: `2: eth0@if5: <UP> mtu 1450 qdisc …`, and
# below `    inet 172.30.0.2/16 …`.
mtu_with() {
  local line mtu=
  while read -r line; do
    [[ ! $line =~ ^[0-9]+:.*\ mtu\ ([0-9]+) ]] || mtu=${BASH_REMATCH[1]}
    [[ $line != "inet $1/"* ]] || echo "$mtu"
  done
}

# plumb_container [BRIDGE]: for a container without a network of Docker's: an interface eth0 in it, joined to
# $container_port on this host, in that bridge.
plumb_container() {
  # A container that was removed may still be holding the name.
  ip link delete "$container_port" 2>/dev/null || true
  ip -batch - <<<"
link add $container_port mtu $OVERLAY_MTU type veth peer name eth0 mtu $OVERLAY_MTU netns $(container_process)
link set $container_port up${1:+ master $1}"
}

# plumb_container_into_segment ADDRESS/PREFIX [BRIDGE]: the same, as one of many in a shared segment.
plumb_container_into_segment() {
  plumb_container "${2:-}"
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

wait_for_servers() {
  wait_until 30 servers_listen "$(container_process)" || fatal "the servers in the measuring container do not listen"
}

# servers_listen PROCESS: whether the tools' servers do, where that process is: netserver on 12865, iperf3 on 5201. A line
# of /proc/PROCESS/net/tcp (proc(5)): `0: 00000000:3241 00000000:0000 0A …`, in hexadecimal, 0A for one that listens.
servers_listen() {
  local file line ports=
  for file in "/proc/$1/net/tcp" "/proc/$1/net/tcp6"; do
    [[ -r $file ]] || continue
    while read -r line; do
      [[ ! $line =~ :(3241|1451)\ 0+:0000\ 0A ]] || ports+=${BASH_REMATCH[1]}
    done <"$file"
  done
  [[ $ports == *3241* && $ports == *1451* ]]
}

if [[ $HOST_ENGINE == namespace ]]; then
  # shellcheck source=provision/overlays/namespace.sh
  source "$OVERLAYS/namespace.sh"
fi
