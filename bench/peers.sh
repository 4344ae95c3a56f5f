#!/bin/sh
# A chain of network namespaces without any tool, with as few processes as ip and tc allow.
#
#   peers.sh make HOSTS [DELAY]    h1 to hHOSTS, each joined to the next one, routed, every link shaped to 50 Mbit/s by tbf;
#                                  with DELAY, such as 5ms, netem delays both ends of each link by it
#   peers.sh ping HOSTS            one echo request from the first to the last
#   peers.sh remove HOSTS
#   peers.sh obey HOSTS            reads the same verbs from its input, a line each; prints `done VERB` after each
#
# It makes and removes namespaces by name: bench/peers.py starts it in network and mount namespaces of its own, or in a
# host of a lab.
set -eu

verb=$1 hosts=$2 delay=${3:-}

make() {
  {
    for host in $(seq "$hosts"); do echo "netns add h$host"; done
    for link in $(seq $((hosts - 1))); do
      echo "link add right netns h$link type veth peer name left netns h$((link + 1))"
    done
  } | ip -batch -
  for host in $(seq "$hosts"); do
    addresses_of "$host" | ip -n "h$host" -batch -
    shapes_of "$host" | tc -n "h$host" -batch -
    ip netns exec "h$host" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
  done
}

# Link L has 10.0.L.1 at its left end and 10.0.L.2 at its right one.
addresses_of() {
  echo "link set lo up"
  if [ "$1" -lt "$hosts" ]; then
    printf '%s\n' "address add 10.0.$1.1/24 dev right" "link set right up"
    for link in $(seq $(($1 + 1)) $((hosts - 1))); do echo "route add 10.0.$link.0/24 via 10.0.$1.2"; done
  fi
  if [ "$1" -gt 1 ]; then
    printf '%s\n' "address add 10.0.$(($1 - 1)).2/24 dev left" "link set left up"
    for link in $(seq $(($1 - 2))); do echo "route add 10.0.$link.0/24 via 10.0.$(($1 - 1)).1"; done
  fi
}

shapes_of() {
  [ "$1" -eq "$hosts" ] || shape right
  [ "$1" -eq 1 ] || shape left
}

shape() {
  echo "qdisc add dev $1 root handle 1: tbf rate 50mbit burst 16kb latency 50ms"
  [ -z "$delay" ] || echo "qdisc add dev $1 parent 1:1 handle 10: netem delay $delay limit 1000"
}

ping() { ip netns exec h1 ping -n -c 1 -w 10 "10.0.$((hosts - 1)).2"; }

remove() { for host in $(seq "$hosts"); do echo "netns delete h$host"; done | ip -batch -; }

obey() {
  while read -r next; do
    "$next"
    echo "done $next"
  done
}

"$verb"
