#!/bin/bash
# Runs inside the Debian root that build.sh makes: compiles the clock. Leaves its products in /tmp/out.
set -euo pipefail

# Debian's nix takes an older memoffset than crates.io's does.
take_debians_memoffset() { sed -i '/^name = "memoffset"$/{n;s/"0.9.1"/"0.8.0"/}' Cargo.lock; }

cd "${0%/*}"
# shellcheck source=provision/rust.sh
source ./rust.sh

use_packaged_crates
take_debians_memoffset
take_lock
compile clock # static, so that it runs on a machine with an older C library
keep Cargo.lock crates.lock
