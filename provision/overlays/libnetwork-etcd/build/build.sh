#!/bin/bash
# Takes the engine out of Debian 12's package docker.io: 20.10, the last one with cluster stores. With it the one library
# it loads that the hosts' Debian has not.
#
#   build.sh OUTPUT        OUTPUT is an existing, empty directory
#
# Needs apt and Debian's keys, which the hosts' image needs too. apt checks the package against Debian's signature.
#
# Environment:
#   MINIGTS_DEBIAN_MIRROR  a Debian mirror; else the one in this machine's apt configuration
set -euo pipefail

# shellcheck source=provision/debian.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../../debian.sh"

readonly output=$1
readonly engine_suite=bookworm
readonly version='20.10.*'

# apt with lists and sources of its own: nothing of this machine's is read or changed.
apart() {
  apt-get -qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root \
    -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}

fetch_packages() {
  local mirror
  mirror=$(configured_mirror)
  [[ -n $mirror ]] || fatal "this machine's apt names no Debian mirror: set MINIGTS_DEBIAN_MIRROR to one"
  mkdir -p "$work"/{lists,cache}/partial "$work/package"
  echo "deb [signed-by=$keys check-valid-until=no] $mirror $engine_suite main" >"$work/sources.list"
  apart update
  (cd "$work/package" && apart download "docker.io=$version" libdevmapper1.02.1)
}

take_engine() {
  local package
  for package in "$work"/package/*.deb; do dpkg-deb -x "$package" "$work/root"; done
  mv "$work/root/usr/sbin/dockerd" "$output/"
  find "$work/root" -name libdevmapper.so.1.02.1 -exec mv {} "$output/" ';'
}

[[ -r $keys ]] || fatal "Debian's keys are missing: apt-get install debian-archive-keyring"
work=$(mktemp -d)
# shellcheck disable=SC2064
trap "rm -rf '$work'" EXIT
fetch_packages
take_engine
