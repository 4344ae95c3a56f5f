#!/bin/bash
# Fetches Debian packages, with all that they depend on and the hosts' image lacks, by this machine's apt. As any user: all
# that apt reads and writes is its own here, and dpkg is never asked, but for the mirror and how to reach it. Where the
# mirror lacks something, Debian's own places are asked.
#
#   fetch.sh ROOT.EXT4 OUTPUT PACKAGE…    OUTPUT is an existing, empty directory; PACKAGE is NAME or NAME=VERSION
#
# Environment: those of ../debian.sh.
# Leaves in OUTPUT: the packages' archives, and versions.lock, a line each: its SHA-256 and file name.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/debian.sh
source "$here/../debian.sh"

readonly root=$1 output=$2
shift 2
readonly work=$output/work

# in_root PATH: a file of the image, which is only read.
in_root() { debugfs -R "cat $1" "$root" 2>/dev/null; }

# What this machine's apt knows of reaching mirrors, proxies above all; and places of its own for all else.
write_configuration() {
  local methods
  eval "$(apt-config shell methods Dir::Bin::methods/d)"
  mkdir -p "$work"/{etc/apt.conf.d,etc/preferences.d,state/lists/partial,cache/archives/partial,log}
  apt-config dump --no-empty --format '%F "%v";%n' Acquire >"$work/apt.conf"
  cat >>"$work/apt.conf" <<END
Dir "$work";
Dir::Etc "$work/etc";
Dir::Etc::sourcelist "$work/etc/sources.list";
Dir::State "$work/state";
Dir::State::status "$work/status";
Dir::Cache "$work/cache";
Dir::Log "$work/log";
Dir::Bin::methods "$methods";
Dir::Bin::dpkg "/bin/false";
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Check-Date "true";
Acquire::Check-Valid-Until "true";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::http::Timeout "20";
END
  in_root /var/lib/dpkg/status >"$work/status"
  [[ -s $work/status ]] || fatal "cannot read which packages $root has; debugfs is in Debian's package e2fsprogs"
  export APT_CONFIG=$work/apt.conf
}

# fetch_from PLACE PACKAGE…: a package that one place's index lacks no other place has, since all have the same release; an
# earlier version of it Debian's archive may have.
fetch_from() {
  local place=$1 options=signed-by=$keys
  shift
  ! is_dated "$place" || options+=' check-valid-until=no'
  echo "deb [$options] $place $suite main non-free" >"$work/etc/sources.list"
  apt-get --quiet -o APT::Update::Error-Mode=any update || return 1
  apt-get --quiet --yes --download-only install "${@%%=*}" --simulate >/dev/null || return 2
  apt-get --quiet --yes --download-only install "$@"
}

keep_archives() {
  local -a archives
  shopt -s nullglob
  archives=("$work"/cache/archives/*.deb)
  ((${#archives[@]} == 0)) || mv "${archives[@]}" "$output/"
  rm -r "$work"
  (cd "$output" && archives=(*.deb) && { ((${#archives[@]} == 0)) || sha256sum "${archives[@]}"; }) >"$work.lock"
  mv "$work.lock" "$output/versions.lock"
}

end_with_caller
write_configuration
from_first_place "$suite_day" "$*" fetch_from "$@"
keep_archives
