#!/bin/bash
# Proves the data path: IP-in-IP on the links, or packets as they are, as the variant has it.
#
# Environment: as for wire.sh and path.sh.
# Prints: ENCAPSULATION=ipip or ENCAPSULATION=none
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/wire.sh
source "$here/../wire.sh"
# shellcheck source=provision/overlays/calico/path.sh
source "$here/path.sh"

expected() { if ip route get "$PEER" | grep "dev $tunnel" >/dev/null; then echo ipip; else echo none; fi; }

prove_encapsulation "$(expected)"
prove_mtu
