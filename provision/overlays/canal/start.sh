#!/bin/bash
# As flannel does it: prints ADDRESS, MTU and ENTER of the container.
set -euo pipefail

exec "$(dirname "${BASH_SOURCE[0]}")/../flannel/start.sh"
