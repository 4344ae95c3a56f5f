#!/bin/bash
# Proves the data path: on the links is what the pool of addresses asks for. Shows what Calico gave this host.
#
# Environment: as for wire.sh and node.sh.
# Prints: ENCAPSULATION, by the variant; BLOCK, the block of addresses that Calico's IPAM gave this host; ENDPOINT, the
# container's interface, for which Felix has made rules; SESSIONS, how many other hosts BIRD speaks BGP with.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/wire.sh
source "$here/../wire.sh"
# shellcheck source=provision/overlays/calico-node/node.sh
source "$here/node.sh"

case $MINIGTS_VARIANT in
always) prove_encapsulation ipip ;;
never) prove_encapsulation none ;;
vxlan) prove_encapsulation vxlan ;;
esac
prove_mtu
endpoint_has_rules || fatal "Felix has no rules for $endpoint"
echo "BLOCK=$(blocks)"
echo "ENDPOINT=$endpoint"
[[ $MINIGTS_VARIANT == vxlan ]] || echo "SESSIONS=$(sessions)"
