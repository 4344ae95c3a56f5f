#!/bin/bash
# Takes the engine out of Debian 12's package docker.io: 20.10, the last one with cluster stores. With it the one library
# it loads that the hosts' Debian has not.
#
#   build.sh OUTPUT        OUTPUT is an existing, empty directory
#
# Needs apt and Debian's keys, which the hosts' image needs too. apt checks the package against Debian's signature.
#
# Environment: those of debian.sh. Once Debian's mirrors have parted with that release, its archives have it.
set -euo pipefail

# shellcheck source=provision/debian.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../../debian.sh"

readonly output=$1
readonly engine_suite=bookworm
readonly version='20.10.*'

# fetch_from PLACE: as this release is past its support, its index is past its date in the end.
fetch_from() {
  rm -rf "$work/apart" "$work/package"
  mkdir -p "$work"/{apart,package}
  echo "deb [signed-by=$keys check-valid-until=no] $1 $engine_suite main" >"$work/apart/sources.list"
  apart "$work/apart" apt-get -qq -o APT::Update::Error-Mode=any update || return
  (cd "$work/package" && apart "$work/apart" apt-get -qq download "docker.io=$version" libdevmapper1.02.1)
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
from_first_place "$suite_day" "docker.io $version of Debian $engine_suite" fetch_from
take_engine
