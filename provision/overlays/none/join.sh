#!/bin/bash
# The underlay is up with the lab: nothing to join.
set -euo pipefail
