#!/bin/bash
# The baseline is the plain host, as in the study: the tools' servers run on it without a container.
#
# Environment: MINIGTS_ADDRESS, MINIGTS_MTU.
# Prints: ADDRESS, MTU; no ENTER, since there is nothing to enter.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/lib.sh
source "$here/../../lib.sh"

servers_listen() { ss -Hltn 'sport = 12865 or sport = 5201' | awk 'END { exit NR < 2 }'; }

start_servers() {
  servers_listen && return
  netserver -4 >/dev/null
  iperf3 -s -D -I /run/iperf3.pid
  wait_until 10 servers_listen || fatal "netserver and iperf3 do not listen"
}

# Of this host's own links; a host without any has the lab's.
smallest_mtu() {
  compgen -G '/sys/class/net/eth*/mtu' >/dev/null || echo "$MINIGTS_MTU"
  cat /sys/class/net/eth*/mtu 2>/dev/null | sort -n | head -n 1
}

start_servers
echo "ADDRESS=$MINIGTS_ADDRESS"
echo "MTU=$(smallest_mtu)"
