# shellcheck shell=bash
# The baseline is the plain host, as in the study: the tools' servers run on it without a container.

install() { :; }

start() {
  hosts_servers_listen || start_servers
  echo "ADDRESS=$HOST_ADDRESS"
  echo "MTU=$(smallest_mtu)"
}

leave() {
  local port id
  for port in 12865 5201; do
    for id in $(listener "$port"); do kill "$id"; done
  done
}

start_servers() {
  netserver -4 >/dev/null
  iperf3 -s -J -D -I /run/iperf3.pid
  wait_until 10 hosts_servers_listen || fatal "netserver and iperf3 do not listen"
}

hosts_servers_listen() { servers_listen $$; }

# listener PORT: the process that listens on it.
listener() { ss -Hltnp "sport = $1" | sed -n 's/.*pid=\([0-9]*\).*/\1/p'; }

# Of this host's own links; a host without any has the lab's.
smallest_mtu() {
  compgen -G '/sys/class/net/eth*/mtu' >/dev/null || echo "$LINK_MTU"
  cat /sys/class/net/eth*/mtu 2>/dev/null | sort -n | head -n 1
}
