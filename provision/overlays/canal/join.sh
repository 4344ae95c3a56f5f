#!/bin/bash
# As flannel does it.
set -euo pipefail

exec "$(dirname "${BASH_SOURCE[0]}")/../flannel/join.sh"
