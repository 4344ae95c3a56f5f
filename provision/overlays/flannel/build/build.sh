#!/bin/bash
# Builds flanneld from its Go module, as ../../../go.sh has it; by this machine's Go only where there is a C compiler, too.
#
#   build.sh OUTPUT        OUTPUT is an existing, empty directory
#
# Environment: that of ../../../debian.sh. The Debian root takes some 1.5 GB in /var/tmp while it is there.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=provision/go.sh
source "$here/../../../go.sh"

if command -v cc >/dev/null && go_will_do "$here"; then
  "$here/compile.sh" "$1"
else
  compile_by_debians_go "$here" "$1" gcc,libc6-dev flanneld
fi
