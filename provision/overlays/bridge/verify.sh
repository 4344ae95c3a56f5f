#!/bin/bash
# Proves that the containers' packets cross the links as they are.
#
# Environment: as for wire.sh.
# Prints: ENCAPSULATION=none
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/wire.sh
source "$here/../wire.sh"

prove_encapsulation none
prove_mtu
