#!/bin/bash
# Proves the data path, from neighbour to neighbour: VXLAN in the kernel, UDP of the router in user space; and that
# nobody on the links can read it where it is encrypted.
#
# Environment: as for wire.sh; MINIGTS_VARIANT.
# Prints: ENCAPSULATION, by the variant; ENCRYPTED=yes where it is.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/wire.sh
source "$here/../wire.sh"

if [[ $MINIGTS_VARIANT == fast ]]; then prove_encapsulation vxlan; else prove_encapsulation udp; fi
prove_mtu
[[ $MINIGTS_VARIANT != sleeve-encrypted ]] || prove_encryption
