#!/bin/bash
# Fetches the one file of Debian's archive that a recipe is made from, by this machine's apt, as any user.
#
#   fetch.sh TABLE OUTPUT VERB    OUTPUT is an existing, empty directory; VERB is what builds with the file, for messages
#
# TABLE has a line for each version that was proven, best first: PACKAGE VERSION DAY SHA-256 PATH. DAY is one on which
# Debian's snapshot archive had it, PATH where it lies on every mirror that still has it. Each is looked for in all places
# before the next one is. What is fetched is held to its sum, so that no index is needed.
#
# Environment: that of debian.sh, and
#   MINIGTS_SOURCE  the version that is wanted, or a file that the user has: a .deb of the package, or its sources as a
#                   tar archive. A version that the table has not is taken from the mirror's suites, by their signatures
#
# Leaves in OUTPUT: source.deb or source.tar, version (empty: the sources say it), and `unproven`, empty, if it was not
# proven.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/debian.sh
source "$here/debian.sh"

readonly table=$1 output=$2 verb=$3 wanted=${MINIGTS_SOURCE:-}
# Names that stay while releases come and go, and one that goes with this project's own.
readonly suites=(unstable testing stable-backports "$suite-backports")

# rows VERSION: the table's, for one version or for all.
rows() { awk -v version="$1" '/^[^#]/ && (version == "" || $2 == version)' "$table"; }

# The beginning that all packages of the table have: linux-source-, user-mode-linux.
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

# Some sums are of a file that a version was proven by.
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

# What does not answer is asked once.
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

# download ADDRESS SHA-256: into OUTPUT. Says why not.
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

# From the suites of the mirror, by the signatures of their indexes.
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

# What the suites have, as lines PACKAGE VERSION SUITE in OUTPUT/seen. An index that is past its date counts for nothing.
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

# `http://… has 7.4.2-1 (unstable)`: what there is, proven or not.
seen() {
  local mirror all why
  read -r mirror < <(places '')
  all=$(awk '{ printf "%s%s (%s)", (NR > 1 ? ", " : ""), $2, $3 }' "$output/seen")
  why=$(why_not "$output/apart/said")
  echo "the suites of $mirror have ${all:-none}${why:+; $why}"
}

# The end of a message: what was seen, what is proven, what can be typed.
what_to_do() {
  local proven other
  [[ -e $output/seen ]] || look_at_suites
  proven=$(rows '' | awk '{ printf "%s%s", (NR > 1 ? ", " : ""), $2 }')
  other=$(rows '' | awk 'NR == FNR { known[$2]; next } !($2 in known) { last = $2 } END { print last }' - "$output/seen")
  echo "Proven: $proven; $(seen). By a file that you have: $verb --source FILE${other:+; to try what nobody has proven: $verb --source $other --unproven}"
}

keep_version() { echo "$1" >"$output/version"; }

# took WHAT
took() {
  if [[ -e $output/unproven ]]; then
    info "source: $1, unproven: nobody has tried it"
  else
    info "source: $1, proven"
  fi
}

end_with_caller
fetch
