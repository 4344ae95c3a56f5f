# shellcheck shell=bash
# Sourced by overlays that run daemons: they are started and ended by a record of their process id.

[[ -n ${daemons:-} ]] || readonly daemons=/run/minigts/daemons

# start_daemon NAME COMMAND…: in the background, unless it runs; what it says goes to daemon_log NAME.
start_daemon() {
  local name=$1
  shift
  daemon_runs "$name" && return
  mkdir -p "$daemons"
  setsid "$@" >>"$(daemon_log "$name")" 2>&1 </dev/null &
  echo $! >"$daemons/$name.pid"
}

daemon_runs() {
  local id
  id=$(cat "$daemons/$1.pid" 2>/dev/null) && [[ -d /proc/$id ]]
}

daemon_log() { echo "/var/log/$1.log"; }

stop_daemon() {
  local id
  id=$(cat "$daemons/$1.pid" 2>/dev/null) || return 0
  kill "$id" 2>/dev/null || true
  wait_until 10 ended "$id" || kill -9 "$id"
  rm -f "$daemons/$1.pid" "$(daemon_log "$1")"
}

ended() { [[ ! -d /proc/$1 ]]; }

# What a program that carries packets itself opens, /dev/net/tun; nothing but the kernel is there to make it.
make_tunnel_device() {
  modprobe tun
  [[ -c /dev/net/tun ]] && return
  mkdir -p /dev/net
  mknod /dev/net/tun c 10 200
}
