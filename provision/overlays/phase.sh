#!/bin/bash
# phase.sh PHASE: runs one phase of the overlay that host.json names, on this host. What every overlay does stands here;
# a folder's overlay.sh holds the phases that differ, and what they need.
#
# The phases, in the order in which minigts runs them; a second run of each changes nothing.
#
#   install  on all hosts at once: daemons, kernel modules
#   join     on the leader (the first host), then on the others at once; what the leader prints as KEY=VALUE are
#            variables for the others, of those that overlay.yaml declares under `prints:`; any other ends the phase. Where a
#            lab has groups, each has its own leader, and knows of no other group
#   start    likewise: the measuring container, with netserver (12865) and iperf3 (5201) listening. Prints ADDRESS, MTU
#            and, where there is a container, ENTER: a process id in it; OWN, the container's own address, where ADDRESS
#            is its host's
#   reach    on all hosts at once: waits until all PEERS, the other hosts' ADDRESSes, answer; NAMES, NAME=ADDRESS of each
#            host of the network, become names in the measuring container, where there is one
#   verify   proves the data path to PEER, another host's ADDRESS. Prints ENCAPSULATION, and prints the same again for as
#            long as the data path is the same: an experiment takes a difference for a fall-back. LARGEST, in a lab with a
#            black hole, is what of MTU passes
#   leave    on all hosts at once: nothing of the overlay remains
#   second   one more container beside the measuring one, where overlay.yaml says that there is one; prints what start does
#   policy   the network itself enforces POLICY from now on, where overlay.yaml says that it does; empty: none
#
# The phases of the user's own containers stand in containers.sh.
#
# From start on a phase has what this host's start printed; what host.json says stands in host.sh. A phase that ends with
# code 3 has said what this machine lacks.
set -euo pipefail

OVERLAYS=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
# shellcheck source=provision/lib.sh
source "$OVERLAYS/../lib.sh"
# shellcheck source=provision/overlays/host.sh
source "$OVERLAYS/host.sh"
# shellcheck source=provision/overlays/docker.sh
source "$OVERLAYS/docker.sh"
# shellcheck source=provision/overlays/wire.sh
source "$OVERLAYS/wire.sh"
# shellcheck source=provision/overlays/containers.sh
source "$OVERLAYS/containers.sh"

readonly reach_deadline_s=$((60 + 5 * (PATIENCE_S - 1)))

install() { start_docker --ip-masq=false --bridge=none; }

join() { :; }

verify() { prove_data_path; }

leave() {
  take_containers_away
  stop_docker
}

second() {
  name_second_container
  start
}

# Where an overlay spreads its members by gossip, a container that runs is not yet one that everybody finds.
reach() {
  local peer
  for peer in $PEERS; do
    wait_until "$reach_deadline_s" answers "$peer" || fatal "$peer did not answer within $reach_deadline_s s"
  done
}

answers() { in_container ping -n -c 1 -W "$PATIENCE_S" -q "$1" >/dev/null; }

# name_hosts: NAMES into the measuring container's /etc/hosts, each host's name with the address at which it is measured. By
# builtins alone: a program more would draw from the host's random numbers, and so change what is measured after it.
name_hosts() {
  local each text='127.0.0.1 localhost'
  [[ $HOST_ENGINE == docker && -n ${ENTER:-} && -n ${NAMES:-} ]] || return 0
  for each in $NAMES; do text+=$'\n'"${each#*=} ${each%%=*}"; done
  printf '%s\n' "$text" >"/proc/$ENTER/root/etc/hosts"
}

# need_modules NAME…: loads them. By code 3 minigts knows that this machine lacks something.
need_modules() {
  local name
  for name in "$@"; do
    modprobe -q "$name" || {
      echo "the hosts' kernel has no $name: build the full one with \`minigts kernel build\`, and bring the lab up anew" >&2
      exit 3
    }
  done
}

# The rules that minigts has put into nftables, where there are any.
remove_rules() { nft delete table inet minigts_policy 2>/dev/null || true; }

for folder in "${FOLDERS[@]}"; do
  # shellcheck disable=SC1090
  [[ ! -e $OVERLAYS/$folder/overlay.sh ]] || source "$OVERLAYS/$folder/overlay.sh"
done

case $1 in
install) need_modules "${KERNEL_MODULES[@]}" ;;
reach) name_hosts ;;
leave)
  release
  [[ $POLICY_BY != nftables ]] || remove_rules
  ;;
esac
"$1"
