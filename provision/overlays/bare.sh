# shellcheck shell=bash
# Sourced by overlays that are measured on the host itself, without a container: the tools' servers run there.

# describe_host ADDRESS MTU: once the servers listen, where this host can be reached.
describe_host() {
  hosts_servers_listen || start_servers "$(family_of "$1")"
  echo "ADDRESS=$1"
  echo "MTU=$2"
}

# start_servers FAMILY: 4 or 6; netserver listens for one of them, iperf3 for both.
start_servers() {
  netserver "-$1" >/dev/null
  iperf3 -s -J -D -I /run/iperf3.pid
  wait_until 10 hosts_servers_listen || fatal "netserver and iperf3 do not listen"
}

family_of() { if [[ $1 == *:* ]]; then echo 6; else echo 4; fi; }

hosts_servers_listen() { servers_listen $$; }

stop_servers() {
  local port id
  for port in 12865 5201; do
    for id in $(listener "$port"); do kill "$id"; done
  done
}

# listener PORT: the process that listens on it.
listener() { ss -Hltnp "sport = $1" | sed -n 's/.*pid=\([0-9]*\).*/\1/p'; }
