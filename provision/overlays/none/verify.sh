#!/bin/bash
# The peer answers, and by the routes that the plan gave.
#
# Environment: PEER (address of another host).
# Prints: ENCAPSULATION=none
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/lib.sh
source "$here/../../lib.sh"

ping -c 3 -i 0.2 -W 2 -q "$PEER" >/tmp/verify.ping || fatal "$PEER does not answer: $(tail -n 2 /tmp/verify.ping)"
echo ENCAPSULATION=none
