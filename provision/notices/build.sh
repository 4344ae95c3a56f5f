#!/bin/bash
# Says of Debian's packages from which source packages they were made, and what their authors want to be said with them:
# for a release, which has programs of these packages without their documentation. As any user.
#
#   build.sh WANTED OUTPUT    WANTED has lines PACKAGE VERSION [SHA-256]; OUTPUT is an existing, empty directory
#
# Environment: that of ../debian.sh.
#
# Takes some 500 MB in OUTPUT while it runs. Leaves in OUTPUT: sources, with lines PACKAGE VERSION SOURCE SOURCE-VERSION,
# several of a package into which others are built; copyright/PACKAGE; licences/NAME, the texts that these refer to.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/debian.sh
source "$here/../debian.sh"

readonly wanted=$1 output=$2
readonly kernel_suite=sid # of User-Mode Linux, as in ../image

# download_from PLACE: all packages, which apt holds against the signed index of the place, into OUTPUT/debs.
download_from() {
  local place=$1 late=()
  rm -rf -- "$output"/{apart,debs}
  mkdir -p "$output"/{apart,debs}
  ! is_dated "$place" || late=(-o Acquire::Check-Valid-Until=false)
  printf 'deb [%s] %s %s main non-free\n' "signed-by=$keys" "$place" "$suite" \
    "check-valid-until=no signed-by=$keys" "$place" "$kernel_suite" >"$output/apart/sources.list"
  apart "$output/apart" apt-get -qq "${late[@]}" update
  (cd "$output/debs" && awk '{ print $1 "=" $2 }' "$wanted" | apart "$output/apart" apt_with_packages "${late[@]}")
}

# apt_with_packages OPTION…: downloads the packages whose names and versions it reads.
apt_with_packages() { xargs apt-get -qq "$@" download; }

# shellcheck disable=SC2016
# Each file has to be the one that was built from, where its sum is known.
check_sums() {
  local file name version sum
  for file in "$output"/debs/*.deb; do
    read -r name version < <(dpkg-deb --show --showformat='${Package} ${Version}\n' "$file")
    sum=$(awk -v name="$name" -v version="$version" '$1 == name && $2 == version { print $3 }' "$wanted")
    [[ -z $sum ]] || sha256sum --check --quiet - <<<"$sum  $file" || fatal "$name $version is not the one that was built from"
  done
}

# shellcheck disable=SC2016
# sources_of FILE: a line for its own source package, and one for each whose code is built into it.
sources_of() {
  local format='${Package} ${Version} ${source:Package} ${source:Version}\n'
  dpkg-deb --show --showformat="$format" "$1"
  dpkg-deb --show --showformat='${Package} ${Version} ${Built-Using}, ${Static-Built-Using}\n' "$1" |
    sed -E 's/[(,=]/ & /g' |
    awk '{ for (at = 3; at < NF; at++) if ($at == "(" && $(at + 1) == "=") { sub(/\)$/, "", $(at + 2)); print $1, $2, $(at - 1), $(at + 2) } }'
}

# A package's directory of documentation may be a link to that of another package, so all lie in one tree.
unpack_documentation() {
  local file
  mkdir "$output"/{tree,copyright}
  for file in "$output"/debs/*.deb; do
    dpkg-deb --fsys-tarfile "$file" |
      tar -x -C "$output/tree" --no-same-owner --wildcards ./usr/share/doc './usr/share/common-licenses*' 2>/dev/null || true
  done
  cp -r "$output/tree/usr/share/common-licenses" "$output/licences"
}

# copyright_of PACKAGE: prints its copyright file, and what its authors want to be handed on in a file NOTICE.
copyright_of() {
  local doc=$output/tree/usr/share/doc/$1/copyright notice
  if [[ -f $doc ]]; then
    cat -- "$doc"
  elif [[ -f $doc.gz ]]; then
    zcat -- "$doc.gz"
  else
    fatal "$1 has no copyright file"
  fi
  for notice in "${doc%/*}"/NOTICE*; do
    [[ ! -f $notice ]] || case $notice in *.gz) zcat -- "$notice" ;; *) cat -- "$notice" ;; esac
  done
}

end_with_caller
from_first_place "$suite_day" "$(wc -l <"$wanted") packages, for their notices," download_from >&2
check_sums
unpack_documentation
for file in "$output"/debs/*.deb; do sources_of "$file"; done | LC_ALL=C sort -u >"$output/sources"
awk '{ print $1 }' "$wanted" | while read -r name; do copyright_of "$name" >"$output/copyright/$name"; done
rm -rf -- "$output"/{apart,debs,tree}
