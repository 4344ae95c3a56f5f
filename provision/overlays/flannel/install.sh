#!/bin/bash
# On the leader, the store in which the hosts find each other; flanneld itself comes with MINIGTS_PROGRAMS.
#
# Environment: as for flanneld.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/flannel/flanneld.sh
source "$here/flanneld.sh"

if [[ $MINIGTS_ADDRESS == "$MINIGTS_LEADER" ]]; then
  start_etcd
  publish_network
fi
