#!/bin/bash
# The way back to the containers of other hosts: by route, in place of masquerading.
#
# Environment: MINIGTS_PEERS (addresses; the last number is the host's index and one).
set -euo pipefail

# gateway PEER: the neighbour by which it is reached.
gateway() { ip -j -4 route get "$1" 2>/dev/null | jq -r '.[0].gateway // empty'; }

for peer in $MINIGTS_PEERS; do
  via=$(gateway "$peer")
  [[ -z $via ]] || ip route replace "172.29.$((${peer##*.} - 1)).0/24" via "$via"
done
