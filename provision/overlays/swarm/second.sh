#!/bin/bash
# Starts one more container in the overlay network, on the host of the measuring one.
#
# Environment: as for start.sh.
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
MINIGTS_CONTAINER=measure-second exec "$here/start.sh"
