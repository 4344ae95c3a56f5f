#!/bin/bash
# Ends the tools' servers.
set -euo pipefail

# listener PORT: the process that listens on it.
listener() { ss -Hltnp "sport = $1" | sed -n 's/.*pid=\([0-9]*\).*/\1/p'; }

end_servers() {
  local port id
  for port in 12865 5201; do
    for id in $(listener "$port"); do kill "$id"; done
  done
}

end_servers
