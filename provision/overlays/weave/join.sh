#!/bin/bash
# Starts the router, which looks for its neighbours.
#
# Environment: as for router.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/overlays/weave/router.sh
source "$here/router.sh"

start_router
