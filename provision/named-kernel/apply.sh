#!/bin/bash
# Runs inside the Debian root, by confined.sh: applies patches to the files that they touch.
#
# /tmp/files has these files of the sources; /tmp/patches/NNN.patch, which are applied in this order, and a file
# NNN.files beside each, the paths in it, a line each. A patch that does not fit a file without fuzz is merged there three
# ways, where /tmp/base has that file as minigts' patches expect it: what the patch changes there is changed here.
#
# Leaves the files changed, and in /tmp/out: `merged`, a line `NNN FILE` for each file that was merged; or `refused`, of
# the first patch that neither fits nor can be merged: a line `NNN FILE`, then what patch(1) says of it. Ends with 3
# where only a base could help.
set -euo pipefail

readonly files=/tmp/files base=/tmp/base out=/tmp/out

# fits DIRECTORY PATCH: whether the whole patch fits there; then it is applied.
fits() {
  patch -d "$1" -p1 --batch --forward --fuzz=0 --dry-run -s <"$2" &>/dev/null || return 1
  patch -d "$1" -p1 --batch --forward --fuzz=0 --no-backup-if-mismatch -s <"$2" >/dev/null
}

# of_file PATCH FILE: prints the part of a patch that is about one file.
of_file() {
  awk -v wanted="$2" '
    function name(text) { sub(/\t.*/, "", text); sub(/^[^\/]*\//, "", text); return text }
    /^--- / && !left { old = $0; getline; new = $0
      is = (name(substr(old, 5)) == wanted || name(substr(new, 5)) == wanted)
      if (is) print old "\n" new; next }
    /^@@ / && !left { split($2, a, ","); split($3, b, ",")
      gone = (2 in a ? a[2] : 1); there = (2 in b ? b[2] : 1); left = gone + there; if (is) print; next }
    left { if (is) print; c = substr($0, 1, 1)
      if (c == "-") gone--; else if (c == "+") there--; else if (c != "\\") { gone--; there-- }
      left = gone + there }
  ' "$1"
}

# merge NUMBER FILE AFTER: merges what a patch has changed from base to AFTER into the file.
merge() {
  local number=$1 file=$2 after=$3
  [[ -e $files/$file && -e $base/$file && -e $after/$file ]] || return 1
  diff3 -m "$files/$file" "$base/$file" "$after/$file" >/tmp/merging || return 1
  cat /tmp/merging >"$files/$file"
  echo "$number $file" >>"$out/merged"
}

refuse() {
  local number=$1 file=$2
  {
    echo "$number $file"
    patch -d "$files" -p1 --batch --forward --fuzz=0 --dry-run </tmp/part 2>&1 || true
  } >"$out/refused"
  [[ -d $base ]] || exit 3
  exit 2
}

apply() {
  local number=$1 patch=/tmp/patches/$1.patch file after=/tmp/after
  rm -rf "$after"
  if [[ -d $base ]]; then
    cp -a "$base" "$after"
    fits "$after" "$patch" || rm -rf "$after"
  fi
  if ! fits "$files" "$patch"; then
    while IFS= read -r file; do
      of_file "$patch" "$file" >/tmp/part
      fits "$files" /tmp/part || merge "$number" "$file" "$after" || refuse "$number" "$file"
    done <"/tmp/patches/$number.files"
  fi
  [[ ! -d $after ]] || { rm -rf "$base" && mv "$after" "$base"; }
}

: >"$out/merged"
for each in /tmp/patches/*.patch; do
  each=${each##*/}
  apply "${each%.patch}"
done
