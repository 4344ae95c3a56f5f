#!/bin/bash
# enter.sh CONTAINER COMMAND…: runs it in a container of the user's, as root, with the environment that it was started with.
# Not by /proc, since a program may write over what stands there.
#
# enter.sh --network CONTAINER COMMAND…: runs this host's own program, in the container's network and in nothing else.
set -euo pipefail

readonly defaults=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "TERM=${TERM:-dumb}")

only_network=no
if [[ $1 == --network ]]; then
  only_network=yes
  shift
fi
name=$1
shift
container=$(curl -sf --unix-socket /run/docker.sock "http://docker/containers/$name/json") || container='{}'
id=$(jq '.State.Pid // 0' <<<"$container")
((id > 0)) || {
  echo "container $name does not run: minigts status" >&2
  exit 125
}
[[ $only_network == no ]] || exec nsenter --net --target "$id" -- "$@"
jq -j '.Config.Env[]? + "\u0000"' <<<"$container" >"/run/minigts/environment.$$"
mapfile -d '' -t environment <"/run/minigts/environment.$$"
rm "/run/minigts/environment.$$"
exec env -i "${defaults[@]}" "${environment[@]}" nsenter --all --root --wd --target "$id" -- "$@"
