#!/bin/bash
# As flannel does it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/needs.sh
source "$here/../needs.sh"

need_modules nf_tables nft_ct
exec "$here/../flannel/install.sh"
