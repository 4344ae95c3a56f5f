#!/bin/bash
# Docker for the container, whose network is Calico's; on the leader, Calico's store.
#
# Environment: as for node.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/needs.sh
source "$here/../needs.sh"
# shellcheck source=provision/overlays/calico-node/node.sh
source "$here/node.sh"

# What Felix's rules are made of, and the way between hosts.
need_modules nf_tables nft_ct nft_fib_inet nft_masq ipip vxlan
lay_out_programs
note_settings
start_docker --ip-masq=false --bridge=none
[[ $MINIGTS_ADDRESS != "$MINIGTS_LEADER" ]] || start_etcd
