#!/bin/bash
# Proves the data path: what the container sends to a peer's container crosses the links as VXLAN, or as ESP that nobody
# can read.
#
# Environment: as for wire.sh; MINIGTS_VARIANT.
# Prints: ENCAPSULATION=vxlan, or ENCAPSULATION=esp and ENCRYPTED=yes
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/wire.sh
source "$here/../wire.sh"

if [[ $MINIGTS_VARIANT == encrypted ]]; then
  prove_encapsulation esp
  prove_encryption
else
  prove_encapsulation vxlan
fi
prove_mtu
