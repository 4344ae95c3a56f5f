# shellcheck shell=bash
# Sourced by phase.sh: the user's own containers, as minigts has written them into containers.json: the engine's network
# that they join, and of each its name in the engine, its host name, and what the engine is asked for.
#
# The network of each is held by a container beside it, NAME.network, which does nothing else. So its address is known
# before the user's program starts, and stays when that ends and is started again.
#
#   load      IMAGE_FILE becomes IMAGE_TAG in the engine. It is of IMAGE_KIND: an archive, in which it is IMAGE_ID and may
#             have names of its own; or a filesystem, which becomes IMAGE_NAME as well
#   has       prints HAS=yes when the engine has IMAGE_TAG
#   hold      holds the containers' networks. Prints NAME=ADDRESS
#   launch    starts the containers anew, with the hosts of names.txt; CONTAINERS: only these, in this order
#   states    prints NAME=STATE: running; running, healthy; exited 1; absent
#   names     starts the containers' name servers anew, those of the measuring ones as well, by the command NAME_SERVER, whose
#             words have no blanks
#   release   takes containers and name servers away

# shellcheck source=provision/overlays/daemons.sh
source "$OVERLAYS/daemons.sh"

readonly containers_json=$OVERLAYS/../containers.json
readonly names_file=$OVERLAYS/../names.txt
readonly starting_s=1

# shellcheck disable=SC2153
load() {
  local id=$IMAGE_ID
  if [[ $IMAGE_KIND == filesystem ]]; then
    id=$IMAGE_NAME
    upload "/images/create?fromSrc=-&repo=$IMAGE_NAME&tag=latest"
  else
    upload '/images/load?quiet=1'
  fi
  docker_api POST "/images/$id/tag?repo=${IMAGE_TAG%:*}&tag=${IMAGE_TAG##*:}" >/dev/null
  rm -f "$IMAGE_FILE"
}

# upload PATH: IMAGE_FILE, to the engine. What it finds wrong later it says in an answer that begins well.
upload() {
  local answer
  answer=$(curl -sS --unix-socket /run/docker.sock -X POST -H 'Content-Type: application/x-tar' -H 'Expect:' \
    -T "$IMAGE_FILE" "http://docker$1") || fatal "the Docker engine takes no image: $(engine_complaint)"
  ! jq -es 'any(.[]; has("error") or has("message"))' <<<"$answer" >/dev/null ||
    fatal "the Docker engine cannot read the image: $(jq -rs '.[] | .error // .message // empty' <<<"$answer")"
}

has() {
  ! docker_api GET "/images/$IMAGE_TAG/json" &>/dev/null || echo HAS=yes
}

# declared FILTER: of each container.
declared() { jq -r ".containers[] | $1" "$containers_json"; }

hold() {
  local name network
  network=$(jq -r .network "$containers_json")
  for name in $(declared .name); do
    container=$name.network
    [[ $(state_of "$container") == running ]] || run_measuring_container "$network"
    echo "$name=$(container_address)"
  done
}

launch() {
  local name id
  local -a names
  read -r -a names <<<"${CONTAINERS:-$(declared .name | paste -sd' ')}"
  for name in "${names[@]}"; do
    remove_container "$name"
    if ! create "$name" || ! docker_api POST "/containers/$name/start" >/dev/null; then
      fatal "container $name does not start"
    fi
    id=$(said Id "$(docker_api GET "/containers/$name/json")")
    ln -sf "/var/lib/docker/containers/$id/$id-json.log" "/var/log/container-$name.log"
  done
  open_ports
  sleep "$starting_s"
  states "${names[@]}"
}

create() { docker_api POST "/containers/create?name=$1" "$(declared "select(.name == \"$1\").settings")" >/dev/null; }

# The ports of this host that lead into containers.
open_ports() {
  local -a ports
  stop_daemon ports
  read -r -a ports <<<"$(port_words | paste -sd' ')"
  ((${#ports[@]} == 0)) || start_daemon ports "$OVERLAYS/ports.py" "${ports[@]}"
}

# PORT:PROCESS:ADDRESS:PORT, a line each.
port_words() {
  local each name port inside
  # shellcheck disable=SC2016
  for each in $(declared '. as $one | .ports[] | "\($one.name):\(.port):\(.container_port)"'); do
    IFS=: read -r name port inside <<<"$each"
    container=$name.network
    echo "$port:$(container_process):$(container_address):$inside"
  done
}

# states [CONTAINER...]: by default all.
states() {
  local name
  local -a names=("$@")
  (($#)) || read -r -a names <<<"$(declared .name | paste -sd' ')"
  for name in "${names[@]}"; do echo "$name=$(state_of "$name")"; done
}

# state_of CONTAINER: running, created, restarting, exited 1; absent, when there is no such container or no engine. Of one
# that is asked how it is: running, healthy.
state_of() {
  local answer
  answer=$(docker_api GET "/containers/$1/json" 2>/dev/null) || {
    echo absent
    return
  }
  jq -r '.State | if .Status == "exited" then "exited \(.ExitCode)"
    elif .Status == "running" and .Health then "running, \(.Health.Status)" else .Status end' <<<"$answer"
}

release() {
  local name
  forget_names
  [[ -e $containers_json ]] || return 0
  if docker_to_leave; then
    for name in $(declared .name); do
      remove_container "$name"
      remove_container "$name.network"
    done
  fi
  stop_daemon ports
  rm -f "$containers_json" "$names_file" /var/log/container-*.log
}

# The name servers of the containers, in a lab with `dns: true`. Each container has one of its own, in its network, since not
# every overlay leads from a container to its host.
readonly name_servers=/run/minigts-name-servers
readonly names_of_containers=/run/minigts-names/containers # which minigts writes, for the host's name server, too

# In the measuring container a host's name stands for the measuring container there, as in its /etc/hosts.
names() {
  local name id
  stop_name_servers
  if [[ -n ${ENTER:-} ]]; then
    serve_names measure "$ENTER" --no-hosts "--addn-hosts=/proc/$ENTER/root/etc/hosts"
  fi
  [[ -e $containers_json ]] || return 0
  for name in $(declared .name); do
    container=$name.network
    id=$(container_process)
    serve_names "$name" "$id"
  done
}

# serve_names NAME PROCESS OPTION…: in the network of that process, which is a container's. The engine and all containers of
# that network share its file /etc/resolv.conf, which is written and not replaced.
serve_names() {
  local name=$1 id=$2 server
  shift 2
  read -r -a server <<<"$NAME_SERVER"
  mkdir -p "$name_servers"
  echo 'nameserver 127.0.0.1' >"/proc/$id/root/etc/resolv.conf"
  nsenter --net="/proc/$id/ns/net" "${server[@]}" --pid-file="$name_servers/$name.pid" "$@"
}

# forget_names: what `names` has made, on leaving.
forget_names() {
  stop_name_servers
  [[ ! -e $names_of_containers ]] || rm -f "$names_of_containers"
}

# A server that goes on would keep the network of a container that is removed.
stop_name_servers() {
  local file id
  for file in "$name_servers"/*.pid; do
    [[ -e $file ]] || continue
    id=$(<"$file")
    kill "$id" 2>/dev/null || true
    wait_until 10 ended "$id" || kill -9 "$id"
    rm -f "$file"
  done
}

# Of a container that holds a network: it sleeps. Other phases have the measuring container's.
case $1 in
hold)
  container_settings() {
    jq -c --arg network "$1" --arg name "${container%.network}" '{
      Image: "minigts/measure", Hostname: .containers[] | select(.name == $name).hostname,
      Cmd: ["/bin/sh", "-c", "exec sleep infinity"], HostConfig: {NetworkMode: $network, LogConfig: {Type: "none"}}
    }' "$containers_json"
  }
  ;;
esac
