#!/bin/bash
# Makes this host a node of Calico's, as the start of its own container does: it is entered in the store, with the pool of
# addresses where there is none yet, gets its tunnel's address, and then Calico's daemons are started.
#
# Environment: as for node.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/calico-node/node.sh
source "$here/node.sh"

daemon_runs felix || enter_node
start_felix
[[ $MINIGTS_VARIANT == vxlan ]] || start_bgp
