#!/bin/bash
# The underlay is up with the lab: nothing to install.
set -euo pipefail
