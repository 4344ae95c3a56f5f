#!/bin/bash
# Called by build.sh as a set-up hook: takes the kernel, and nothing else, from the suite named.
#
#   prefer-kernel.sh ROOT SUITE
set -euo pipefail

readonly root=$1 suite=$2

mkdir -p "$root/etc/apt/preferences.d"
cat >"$root/etc/apt/preferences.d/minigts" <<END
Package: *
Pin: release n=$suite
Pin-Priority: -1

Package: user-mode-linux
Pin: release n=$suite
Pin-Priority: 900
END
