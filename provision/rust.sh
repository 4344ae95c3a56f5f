# shellcheck shell=bash
# Sourced by the compile.sh of the Rust programs, inside the Debian root that their build.sh makes.

readonly target=x86_64-unknown-linux-gnu registry=/usr/share/cargo/registry out=/tmp/out

# Crates come from Debian's packages alone, in the versions that this release has: there is no network here.
use_packaged_crates() {
  export CARGO_HOME=/tmp/cargo CARGO_TARGET_DIR=target # whatever the user's own cargo is told
  mkdir "$CARGO_HOME"
  printf '[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "%s"\n' "$registry" \
    >"$CARGO_HOME/config.toml"
}

# Holds the build to the crates of Cargo.lock, by name and version. Debian's packages do not have the sums of crates.io; their
# own signatures hold them.
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

# compile NAME FLAG…: compiles the program NAME statically, with these flags of the compiler besides, and leaves it in /tmp/out.
# The target is named so that the flags leave out what runs in the compiler. Messages name a source by its path, and not by
# the place where it was compiled.
compile() {
  local name=$1
  shift
  RUSTFLAGS="-C target-feature=+crt-static -C strip=symbols --remap-path-prefix=$PWD=. --remap-path-prefix=$registry=crates $*" \
    cargo build --offline --locked --release --target "$target"
  keep "target/$target/release/$name" "$name"
}

# keep FILE NAME: leaves a file in /tmp/out under that name.
keep() { cp "$1" "$out/$2"; }
