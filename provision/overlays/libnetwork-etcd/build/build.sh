#!/bin/bash
# Takes the engine out of Debian 12's package docker.io: 20.10, the last one with cluster stores. With it the one library
# it loads that the hosts' Debian has not.
#
#   build.sh OUTPUT        OUTPUT is an existing, empty directory
#
# Needs apt and Debian's keys, which the hosts' image needs too. apt checks the package against Debian's signature.
#
# Environment:
#   MINIGTS_DEBIAN_MIRROR  a Debian mirror; else the one in this machine's apt configuration, else Debian's own
set -euo pipefail

readonly output=$1
readonly suite=bookworm
readonly version='20.10.*'
readonly keys=/usr/share/keyrings/debian-archive-keyring.gpg

fatal() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

mirror() {
  local configured
  # shellcheck disable=SC2016
  configured=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }')
  echo "${MINIGTS_DEBIAN_MIRROR:-${configured:-http://deb.debian.org/debian}}"
}

# apt with lists and sources of its own: nothing of this machine's is read or changed.
apart() {
  apt-get -qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root \
    -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}

fetch_packages() {
  mkdir -p "$work"/{lists,cache}/partial "$work/package"
  echo "deb [signed-by=$keys check-valid-until=no] $(mirror) $suite main" >"$work/sources.list"
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
