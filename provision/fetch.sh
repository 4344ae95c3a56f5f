#!/bin/bash
# Fetches the file of Debian's archive that a recipe builds from, by this machine's apt, as any user.
#
#   fetch.sh TABLE OUTPUT VERB    OUTPUT is an existing, empty directory; VERB is the command that builds, for messages
#
# TABLE has a line for each proven version, best first: PACKAGE VERSION DAY SHA-256 PATH. DAY is a day on which Debian's
# snapshot archive had it, PATH its path on every mirror that still has it. Each version is looked for in all places
# before the next one. The file must have the sum in the table, so no index is needed.
#
# Environment: that of debian.sh, and
#   MINIGTS_SOURCE  the version to use instead of the best one, or a file: a .deb of the package, or its sources as a tar
#                   archive. A version that is not in the table is taken from the mirror's suites, by their signatures
#
# Writes to OUTPUT: source.deb or source.tar, version (empty if only the sources contain it), and an empty file
# `unproven` if the version was not proven.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/debian.sh
source "$here/debian.sh"

readonly table=$1 output=$2 verb=$3 wanted=${MINIGTS_SOURCE:-}
# Three names that no release changes, and the backports of the release that hosts have.
readonly suites=(unstable testing stable-backports "$suite-backports")

# rows VERSION: prints the table's rows for one version, or all rows if VERSION is empty.
rows() { awk -v version="$1" '/^[^#]/ && (version == "" || $2 == version)' "$table"; }

# Prints the common beginning of the table's package names: linux-source-, user-mode-linux.
stem() { rows '' | awk 'NR == 1 { sub("-[0-9][0-9.]*$", "-", $1); print $1 }'; }

fetch() {
  if [[ $wanted == */* ]]; then
    take_file
  elif [[ -n $wanted && -z $(rows "$wanted") ]]; then
    take_unproven
  else
    take_proven
  fi
}

# A file is proven if its sum is in the table.
take_file() {
  local sum version
  [[ -r $wanted && -f $wanted ]] || fatal "$no_source $wanted cannot be read"
  read -r sum _ < <(sha256sum -- "$wanted")
  version=$(rows '' | awk -v sum="$sum" '$4 == sum { print $2 }')
  if [[ -z $version ]]; then
    version=$(dpkg-deb --field "$wanted" Version 2>/dev/null || true)
    : >"$output/unproven"
  fi
  if dpkg-deb --info "$wanted" &>/dev/null; then
    cp -- "$wanted" "$output/source.deb"
  else
    cp -- "$wanted" "$output/source.tar"
  fi
  keep_version "$version"
  took "$wanted, SHA-256 $sum${version:+, version $version}"
}

# A place that does not answer is asked only once.
take_proven() {
  local package version day sum path place why tried=() silent=' '
  while read -r package version day sum path <&3; do
    while read -r place <&4; do
      [[ $silent != *" $place "* ]] || continue
      if why=$(download "${place%/}/$path" "$sum"); then
        keep_version "$version"
        took "$package $version from $place"
        return
      fi
      tried+=("$package $version at $place: $why")
      info "source: not ${tried[-1]}"
      [[ $why != Could\ not* && $why != Connection* ]] || silent+="$place "
    done 4< <(places "$day")
  done 3< <(rows "$wanted")
  fatal "$no_source no proven version is to be had ($(joined '; ' "${tried[@]}")). $(what_to_do)"
}

# download ADDRESS SHA-256: to OUTPUT/source.deb. If it fails, it prints why.
download() {
  if /usr/lib/apt/apt-helper -qq -o APT::Sandbox::User=root -o Acquire::Retries=1 -o Acquire::http::Timeout=20 \
    download-file "$1" "$output/source.deb" "SHA256:$2" &>"$output/said"; then
    rm "$output/said"
  else
    why_not "$output/said" | sed 's/ ([^ ]*)$//' | grep . || tail -n 1 "$output/said"
    rm -f "$output"/{said,source.deb*}
    return 1
  fi
}

# Fetches the wanted version from the mirror's suites, whose indexes are signed.
take_unproven() {
  local package place
  look_at_suites
  read -r package _ place < <(awk -v version="$wanted" '$2 == version' "$output/seen") ||
    fatal "$no_source no suite has $wanted. $(what_to_do)"
  (cd "$output" && apart "$output/apart" apt-get -qq download "$package=$wanted" && mv -- *.deb source.deb) >&2
  rm -r "$output"/{apart,seen}
  keep_version "$wanted"
  : >"$output/unproven"
  took "$package $wanted from $place"
}

# Writes the suites' versions to OUTPUT/seen, as lines PACKAGE VERSION SUITE. An index past its date is ignored.
look_at_suites() {
  local mirror package
  read -r mirror < <(places '')
  mkdir -p "$output/apart"
  printf "deb [signed-by=$keys] $mirror %s main\n" "${suites[@]}" >"$output/apart/sources.list"
  apart "$output/apart" apt-get -qq update &>"$output/apart/said" || true
  apart "$output/apart" apt-cache pkgnames "$(stem)" | sort | while read -r package; do
    apart "$output/apart" apt-cache madison "$package"
  done | sed -nE 's/^ *([^ ]+) \| +([^ ]+) +\| [^ ]+ ([^ /]+).*/\1 \2 \3/p' | sort -u | sort -V -k 2 >"$output/seen"
}

# Prints which versions the suites have, proven or not: `the suites of http://… have 7.4.2-1 (unstable)`.
seen() {
  local mirror all why
  read -r mirror < <(places '')
  all=$(awk '{ printf "%s%s (%s)", (NR > 1 ? ", " : ""), $2, $3 }' "$output/seen")
  why=$(why_not "$output/apart/said")
  echo "the suites of $mirror have ${all:-none}${why:+; $why}"
}

# Prints the end of a message: the proven versions, those of the suites, and the options to use others.
what_to_do() {
  local proven other
  [[ -e $output/seen ]] || look_at_suites
  proven=$(rows '' | awk '{ printf "%s%s", (NR > 1 ? ", " : ""), $2 }')
  other=$(rows '' | awk 'NR == FNR { known[$2]; next } !($2 in known) { last = $2 } END { print last }' - "$output/seen")
  echo "Proven: $proven; $(seen). To use a file: $verb --source FILE${other:+; to try an unproven version: $verb --source $other --unproven}"
}

keep_version() { echo "$1" >"$output/version"; }

# took WHAT: reports the source that is used.
took() {
  if [[ -e $output/unproven ]]; then
    info "source: $1, unproven: nobody has tried it"
  else
    info "source: $1, proven"
  fi
}

end_with_caller
fetch
