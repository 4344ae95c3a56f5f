#!/bin/bash
# Proves the data path: VXLAN on the links, forwarded by the kernel.
#
# Environment: as for wire.sh.
# Prints: ENCAPSULATION=vxlan, DATAPATH=kernel
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/wire.sh
source "$here/../wire.sh"
# shellcheck source=provision/overlays/ovs/switch.sh
source "$here/switch.sh"

# The kernel has the flow for what was just sent: it does not come to the daemon packet by packet.
prove_kernel_datapath() {
  ovs-appctl dpctl/show | grep '^system@' >/dev/null || fatal "the switch forwards outside the kernel"
  ovs-appctl dpctl/dump-flows type=ovs 2>/dev/null | grep 'tunnel(' >/dev/null || fatal "the kernel has no flow for the tunnels"
  echo DATAPATH=kernel
}

prove_encapsulation vxlan
prove_mtu
prove_kernel_datapath
