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

# The host that has PEER'"'"'s block.
host_of_peer() {
  ip -j route get "$PEER" | jq -r '.[0].gateway'
}

expected() { if ip route get "$PEER" | grep -q "dev $tunnel"; then echo ipip; else echo none; fi; }

prove_encapsulation "$(expected)"
prove_mtu
