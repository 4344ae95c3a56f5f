#!/bin/bash
# enter.sh CONTAINER COMMAND…: runs it in a container of a pod, by its id in containerd, as root, with the environment that
# it was started with.
#
# enter.sh --network CONTAINER COMMAND…: runs this host's own program, in the pod's network and in nothing else.
set -euo pipefail

readonly defaults=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "TERM=${TERM:-dumb}")

programs=$(jq -r .programs /run/minigts/host.json)
only_network=no

containers() { "$programs/ctr" --address /run/minigts/containerd/containerd.sock --namespace k8s.io "$@"; }

if [[ $1 == --network ]]; then
  only_network=yes
  shift
fi
name=$1
shift
id=$(containers tasks ls | awk -v name="$name" '$1 == name && $3 == "RUNNING" { print $2 }')
[[ -n $id ]] || {
  echo "the container no longer runs" >&2
  exit 125
}
[[ $only_network == no ]] || exec nsenter --net --target "$id" -- "$@"
declare -a environment
eval "environment=($(containers containers info "$name" | jq -r '.Spec.process.env // [] | @sh'))"
exec env -i "${defaults[@]}" "${environment[@]}" nsenter --all --root --wd --target "$id" -- "$@"
