#!/bin/bash
# Waits until every peer answers from here. Where an overlay spreads its members by gossip, a container that runs is not
# yet one that everybody finds.
#
# Environment: PEERS (addresses); ENTER (a process id in the measuring container; without it, the host itself).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/lib.sh
source "$here/../lib.sh"

readonly deadline_s=60

enter() { if [[ -n ${ENTER:-} ]]; then nsenter --target "$ENTER" --net "$@"; else "$@"; fi; }

answers() { enter ping -n -c 1 -W 1 -q "$1" >/dev/null; }

for peer in $PEERS; do
  wait_until "$deadline_s" answers "$peer" || fatal "$peer did not answer within $deadline_s s"
done
