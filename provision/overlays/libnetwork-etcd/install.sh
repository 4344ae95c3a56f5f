#!/bin/bash
# On the leader, the store in which the engines find each other.
#
# Environment: as for engine.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/libnetwork-etcd/engine.sh
source "$here/engine.sh"

[[ $MINIGTS_ADDRESS != "$MINIGTS_LEADER" ]] || start_etcd
