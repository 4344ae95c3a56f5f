#!/bin/bash
# Runs inside the Debian root that build.sh makes: compiles the clock. Leaves its products in /tmp/out.
set -euo pipefail

readonly target=x86_64-unknown-linux-gnu registry=/usr/share/cargo/registry out=/tmp/out

# Crates come from Debian's packages alone, in the versions that this release has: there is no network here.
use_packaged_crates() {
  export CARGO_HOME=/tmp/cargo CARGO_TARGET_DIR=target # whatever the user's own cargo is told
  mkdir "$CARGO_HOME"
  printf '[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "%s"\n' "$registry" \
    >"$CARGO_HOME/config.toml"
}

# Statically, so that it runs on a machine with an older C library. The target is named for the flag to leave out what
# runs in the compiler.
compile() {
  RUSTFLAGS='-C target-feature=+crt-static -C strip=symbols' \
    cargo build --offline --release --target "$target"
}

keep_products() {
  cp "target/$target/release/clock" "$out/clock"
  cp Cargo.lock "$out/crates.lock"
}

cd "${0%/*}"
use_packaged_crates
compile
keep_products
