#!/bin/bash
# Runs inside the Debian root, by confined.sh: brings /tmp/tree to what its sources are now. /tmp/removed has the paths of
# files that are gone, each ended by a zero byte; /tmp/changed.tar the new files and those with another content, whose time is
# now, so that make compiles what depends on them.
set -euo pipefail

cd /tmp/tree
xargs -0 -r rm -f -- </tmp/removed
tar -x --touch --no-same-owner --recursive-unlink -f /tmp/changed.tar
