#!/bin/bash
# Proves the data path: what the router says of each connection, and what the links carry.
#
# Environment: as for wire.sh and router.sh.
# Prints: ENCAPSULATION; CONNECTIONS, the path that each uses, fastdp or sleeve; ENCRYPTED=yes where it is.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/wire.sh
source "$here/../wire.sh"
# shellcheck source=provision/overlays/weave/router.sh
source "$here/router.sh"

every_connection_on_its_path || fatal "not every connection is $(wanted_path): $(connections)"
if [[ $MINIGTS_VARIANT == fast ]]; then prove_encapsulation vxlan; else prove_encapsulation udp; fi
prove_mtu
[[ $MINIGTS_VARIANT != *encrypted ]] || prove_encryption
echo "CONNECTIONS=$(paths | sort | paste -sd,)"
