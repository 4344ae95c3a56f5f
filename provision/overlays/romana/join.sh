#!/bin/bash
# Announces this host's block of addresses to the neighbours by OSPF, and learns theirs.
#
# Environment: MINIGTS_ADDRESS, MINIGTS_INDEX.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/bird.sh
source "$here/../bird.sh"

spread_block_by_ospf "eth*"
