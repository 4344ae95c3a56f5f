#!/bin/bash
# The container shares the host's network: nothing to join.
set -euo pipefail
