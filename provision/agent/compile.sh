#!/bin/bash
# Runs inside the Debian root that build.sh makes: compiles the agent. Leaves it in /tmp/out.
set -euo pipefail

readonly target=x86_64-unknown-linux-gnu registry=/usr/share/cargo/registry out=/tmp/out

# Crates come from Debian's packages alone, in the versions that this release has: there is no network here.
use_packaged_crates() {
  export CARGO_HOME=/tmp/cargo CARGO_TARGET_DIR=target # whatever the user's own cargo is told
  mkdir "$CARGO_HOME"
  printf '[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "%s"\n' "$registry" \
    >"$CARGO_HOME/config.toml"
}

# Holds the build to the crates of Cargo.lock, by name and version. Sums of crates.io's Debian's packages have not; their own
# signatures hold them.
take_lock() {
  awk -v registry="$registry" '
    /^name = /    { name = substr($3, 2, length($3) - 2) }
    /^version = / { version = substr($3, 2, length($3) - 2) }
    /^checksum = / {
      if ((getline about < (registry "/" name "-" version "/.cargo-checksum.json")) > 0) {
        match(about, /"package": *"[^"]*"/)
        sum = substr(about, RSTART, RLENGTH)
        sub(/"package": */, "", sum)
        $0 = "checksum = " sum
      } else lacking = lacking " " name " " version
    }
    { print }
    END { if (lacking) { print "lacks: it has not the crates of Cargo.lock:" lacking >"/dev/stderr"; exit 1 } }
  ' Cargo.lock >held.lock
  mv held.lock Cargo.lock
}

# Statically and for a fixed address: to start it opens no other file, and relocates nothing.
compile() {
  RUSTFLAGS='-C target-feature=+crt-static -C relocation-model=static -C strip=symbols' \
    cargo build --offline --locked --release --target "$target"
}

keep_product() { cp "target/$target/release/agent" "$out/agent"; }

cd "${0%/*}"
use_packaged_crates
take_lock
compile
keep_product
