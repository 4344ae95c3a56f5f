#!/bin/bash
# Proves flannel's data path; prints ENCAPSULATION and LEASE.
set -euo pipefail

exec "$(dirname "${BASH_SOURCE[0]}")/../flannel/verify.sh"
