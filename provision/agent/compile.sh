#!/bin/bash
# Runs inside the Debian root that build.sh makes: compiles the agent. Leaves it in /tmp/out.
set -euo pipefail

cd "${0%/*}"
# shellcheck source=provision/rust.sh
source ./rust.sh

use_packaged_crates
take_lock
# Static and at a fixed address: to start it opens no other file, and relocates nothing.
compile agent -C relocation-model=static
