#!/bin/bash
# Proves the data path: what the container sends to a peer's container crosses the links as VXLAN.
#
# Environment: as for wire.sh.
# Prints: ENCAPSULATION=vxlan
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/wire.sh
source "$here/../wire.sh"

prove_encapsulation vxlan
prove_mtu
