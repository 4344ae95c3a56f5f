#!/bin/bash
# Docker's engine, without the bridge and the firewall rules that an overlay network does not use.
#
# Environment: MINIGTS_VARIANT.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/docker.sh
source "$here/../docker.sh"
# shellcheck source=provision/overlays/needs.sh
source "$here/../needs.sh"

# IPsec, and what Docker marks by iptables for it.
[[ $MINIGTS_VARIANT != encrypted ]] || need_modules xfrm_user esp4 xt_mark xt_policy xt_u32
start_docker --ip-masq=false --bridge=none
