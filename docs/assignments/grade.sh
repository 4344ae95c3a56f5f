#!/usr/bin/env bash
# grade.sh ASSIGNMENT SUBMISSIONS GRADES: grades each student's folder in SUBMISSIONS, and prints a line for each.
# GRADES/ana.txt then says what was wrong, and GRADES/ana.xml is the same for programs (JUnit's format).
#
# Of a folder only the files are taken that the assignment asks for: plain files of at most 100 kB, beside those that
# were handed out. They are read here, and what they say to do is done on hosts of a lab in virtual time, which have no
# way out. MINIGTS is the program, by default the one on the PATH.
set -euo pipefail

readonly MOST_BYTES=100000

main() {
  (($# == 3)) || fatal "three words: an assignment, the folder with a folder for each student, one for the grades"
  local assignment=$here/$1 submissions=$2 grades=$3 student
  [[ -d $assignment/solution ]] || fatal "there is no assignment $1"
  [[ -d $submissions ]] || fatal "there is no folder $submissions"
  for student in "$submissions"/*/; do
    [[ -d $student ]] || fatal "there is no folder in $submissions"
    mkdir -p "$grades"
    grade "$assignment" "${student%/}" "$grades/$(basename "$student")"
  done
}

# grade ASSIGNMENT STUDENT INTO: writes INTO.txt and INTO.xml.
grade() {
  local folder tests
  folder=$(mktemp -d)
  tests=$(echo "$1"/grade_*.py)
  collect "$1" "$2" "$folder"
  rm -f "$3.xml"
  "${MINIGTS:-minigts}" test "$tests" --minigts "$folder/topology.yaml" --minigts-time virtual --minigts-fresh \
    --junitxml "$3.xml" >"$3.txt" 2>&1 || true
  rm -r "$folder"
  echo "$(basename "$2"): $(points "$3.xml")"
}

# collect ASSIGNMENT STUDENT FOLDER: what was handed out, with the student's files over it.
collect() {
  local file own
  cp "$1"/handout/* "$3"
  for file in "$1"/solution/*; do
    own=$2/$(basename "$file")
    if [[ -f $own && ! -L $own ]] && (($(stat -c %s "$own") <= MOST_BYTES)); then
      cp "$own" "$3"
    fi
  done
}

# points FILE: of a file of JUnit's format.
points() {
  local all failed errors
  all=$(count tests "$1") failed=$(count failures "$1") errors=$(count errors "$1")
  if ((all > 0)); then
    echo "$((all - failed - errors)) of $all"
  else
    echo "not graded"
  fi
}

count() { { grep -o " $1=\"[0-9]*\"" "$2" 2>/dev/null || echo 0; } | head -n 1 | tr -dc 0-9; }

fatal() {
  echo "grade.sh: $1" >&2
  exit 2
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
main "$@"
