# shellcheck shell=bash
# Sourced by overlay.sh: containerd, which runs the pods' containers, and its images.

# shellcheck source=provision/overlays/daemons.sh
source "$OVERLAYS/daemons.sh"

readonly containerd_root=/var/lib/minigts/containerd
readonly containerd_state=/run/minigts/containerd
readonly containerd_socket=$containerd_state/containerd.sock
readonly plugins=$PROGRAMS/plugins
readonly network_settings=/run/minigts/cni
readonly pause_image=minigts/pause:latest
readonly measure_image=minigts/measure:latest
readonly dns_image=minigts/coredns:built
readonly own_images=/srv/kubernetes/images # the user's, by `files:` of a topology

loaded_root=/var/lib/minigts/images.loaded

# times: what is waited for has so many times the time that it takes in virtual time. In real time a machine that is busy,
# or emulates its hosts' processors, makes all of it late.
times=1
[[ $CLOCK == virtual ]] || times=8

# A daemon written in Go clears its memory in a thread that spins; see docker.sh.
settled=()
[[ $CLOCK != virtual ]] || settled=(env GODEBUG=gcstoptheworld=2)

# PROXY_MODE, CLUSTER_DNS and CLUSTER_POLICIES: what the topology says under `kubernetes:`.
eval "$(jq -r '.kubernetes | @sh "PROXY_MODE=\(.proxy) CLUSTER_DNS=\(.dns) CLUSTER_POLICIES=\(.policies)"' \
  "${HOST_JSON:-$OVERLAYS/../host.json}")"

# await NAME SECONDS COMMAND…: until the command succeeds, for so many seconds of virtual time, and no longer than the daemon
# NAME runs.
await() {
  local name=$1 seconds=$2
  shift 2
  wait_until $((seconds * times)) done_or_ended "$name" "$@" && daemon_runs "$name"
}

done_or_ended() { "${@:2}" || ! daemon_runs "$1"; }

# containers COMMAND…: containerd's own client, among Kubernetes' containers.
containers() { "$PROGRAMS/ctr" --address "$containerd_socket" --namespace k8s.io "$@"; }

start_containerd() {
  modprobe -a overlay bridge veth br_netfilter
  mkdir -p "$containerd_state" "$network_settings"
  containerd_settings >"$containerd_state/config.toml"
  start_daemon containerd "${settled[@]}" containerd --config "$containerd_state/config.toml"
  await containerd 60 containerd_answers || fatal "containerd did not start: $(tail -n 5 "$(daemon_log containerd)")"
}

containerd_answers() { containers version &>/dev/null; }

containerd_settings() {
  cat <<END
version = 2
root = "$containerd_root"
state = "$containerd_state"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.tracing"]
[grpc]
address = "$containerd_socket"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "docker.io/$pause_image"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "$plugins"
conf_dir = "$network_settings"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
END
}

import_images() {
  local file
  if ! has_image "$pause_image" || ! has_image "$measure_image"; then make_images; fi
  [[ $CLUSTER_DNS != true ]] || has_image "$dns_image" || make_dns_image
  for file in "$own_images"/*; do
    [[ ! -e $file ]] || containers images import "$file" >/dev/null || fatal "containerd takes no image from $file"
  done
  forget_what_was_written
}

# Images are written three times over, and of that hardly anything is read again: it would stay in the host's memory.
forget_what_was_written() {
  sync
  echo 1 >/proc/sys/vm/drop_caches
}

# Both images have the measuring container's files, of which there is one copy.
make_images() {
  local place=/var/lib/minigts/images.kubernetes
  rm -rf "$place"
  mkdir -p "$place"
  tar -c --sort=name --numeric-owner -C "$(measuring_files)" . >"$place/layer.tar"
  write_images "$place" \
    "$measure_image" '["/bin/sh", "-c", "netserver -4 && exec iperf3 -s -J >/dev/null 2>&1"]' \
    "$pause_image" '["/usr/bin/sleep", "infinity"]'
  rm -rf "$place"
}

# CoreDNS alone, which is one static file.
make_dns_image() {
  local place=/var/lib/minigts/images.kubernetes
  rm -rf "$place"
  mkdir -p "$place"
  tar -c --numeric-owner --owner=0 --group=0 --mtime=@0 -C "$PROGRAMS" coredns >"$place/layer.tar"
  write_images "$place" "$dns_image" '["/coredns"]'
  rm -rf "$place"
}

# load, has: as in ../containers.sh, into containerd, where IMAGE_TAG stands beside the names that the file gives.
# shellcheck disable=SC2153
load() {
  local place=$loaded_root name="docker.io/library/$IMAGE_NAME:latest"
  if [[ $IMAGE_KIND == filesystem ]]; then
    rm -rf "$place"
    mkdir -p "$place"
    uncompressed "$IMAGE_FILE" >"$place/layer.tar"
    write_images "$place" "$IMAGE_NAME:latest" null
    rm -rf "$place"
    containers images tag --force "$name" "docker.io/$IMAGE_TAG" >/dev/null
  else
    containers images import --index-name "docker.io/$IMAGE_TAG" "$IMAGE_FILE" >/dev/null ||
      fatal "containerd takes no such image"
  fi
  rm -f "$IMAGE_FILE"
}

has() { ! has_image "$IMAGE_TAG" || echo HAS=yes; }

# uncompressed FILE: an image's layer is known by the hash of its plain bytes.
uncompressed() {
  case $(head -c 6 "$1" | od -An -tx1 | tr -d ' ') in
  1f8b*) gzip -dc "$1" ;;
  fd377a585a00) xz -dc "$1" ;;
  425a68*) bzip2 -dc "$1" ;;
  *) cat "$1" ;;
  esac
}

has_image() { containers images ls --quiet | grep -Fx "docker.io/$1" >/dev/null; }

# measuring_files: the directory that Docker's store has for the measuring container's image, which is one layer.
measuring_files() {
  local id layer store=/var/lib/docker/image/overlay2
  id=$(jq -r --arg name "$measure_image" '.Repositories[][$name] // empty' "$store/repositories.json")
  layer=$(jq -r '.rootfs.diff_ids[0]' "$store/imagedb/content/sha256/${id#sha256:}")
  echo "/var/lib/docker/overlay2/$(<"$store/layerdb/sha256/${layer#sha256:}/cache-id")/diff"
}

# write_images DIRECTORY [NAME COMMAND]…: images of the files in layer.tar, each with its command as JSON, null for none, into
# containerd in the format of `docker save`.
write_images() {
  local place=$1 layer config
  local -a configs=()
  layer=$(sha256sum <"$place/layer.tar")
  shift
  while (($#)); do
    config=config${#configs[@]}.json
    configs+=("$config")
    jq -nc --arg layer "sha256:${layer%% *}" --argjson command "$2" '{
      architecture: "amd64", os: "linux", created: "2025-08-09T00:00:00Z", config: {Entrypoint: $command},
      rootfs: {type: "layers", diff_ids: [$layer]}
    }' >"$place/$config"
    jq -nc --arg name "$1" --arg config "$config" '{Config: $config, RepoTags: [$name], Layers: ["layer.tar"]}'
    shift 2
  done | jq -sc . >"$place/manifest.json"
  (cd "$place" && tar -c manifest.json config*.json layer.tar) | containers images import - >/dev/null
}

# process_of CONTAINER: its first process.
process_of() { containers tasks ls | awk -v id="$1" '$1 == id { print $2 }'; }

# remove_pods: all that runs, as containerd knows it; what the network's plugins made for them goes with their namespaces.
remove_pods() {
  local id
  for id in $(containers tasks ls --quiet); do
    containers tasks kill --signal KILL "$id" || true
    containers tasks rm --force "$id" >/dev/null || true
  done
  for id in $(containers containers ls --quiet); do containers containers rm "$id" >/dev/null || true; done
}

stop_containerd() {
  stop_daemon containerd
  unmount_below "$containerd_state"
  unmount_below "$containerd_root"
  rm -rf "$containerd_state" "$containerd_root" "$network_settings"
}

# unmount_below DIRECTORY: everything, and itself; the last mounted first.
unmount_below() {
  local place
  awk -v below="$1/" 'index($2 "/", below) == 1 { print $2 }' /proc/mounts | tac | while read -r place; do
    umount "$place" 2>/dev/null || umount --lazy "$place"
  done
}
