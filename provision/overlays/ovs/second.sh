#!/bin/bash
# Starts one more container and plugs it into the bridge, on the host of the measuring one.
#
# Environment: as for start.sh.
# Prints: ADDRESS, MTU and ENTER of the container.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
MINIGTS_CONTAINER=measure-second MINIGTS_CONTAINER_PORT=measure1 MINIGTS_ADDRESS_BLOCK=128 exec "$here/start.sh"
