# shellcheck shell=bash
# Sourced by overlays whose routes are spread by BIRD 2, a routing daemon for BGP and OSPF.

readonly routes=172.31.0.0/16
readonly bird_directory=/run/minigts/bird

# start_bird: with the configuration on stdin, to which the parts that all need are added. A second call reads it anew.
start_bird() {
  mkdir -p "$bird_directory"
  { common_configuration && cat; } >"$bird_directory/bird.conf"
  if bird_runs; then
    ask_bird configure >/dev/null
  else
    bird -c "$bird_directory/bird.conf" -s "$bird_directory/bird.ctl" -P "$bird_directory/bird.pid"
    wait_until 10 bird_runs || fatal "BIRD does not answer"
  fi
}

# spread_block_by_ospf INTERFACES: this host's block of addresses becomes known to the other hosts of its network, from
# neighbour to neighbour; INTERFACES is the pattern, BIRD's and the shell's, of those that lead to them. A network has an
# instance of its own, so that two of a lab with groups do not hear each other on one segment.
spread_block_by_ospf() {
  start_bird <<END
protocol static {
  ipv4;
  route $(host_block) blackhole;
}
protocol ospf v2 {
  instance id $(ospf_instance);
  ecmp no;
  ipv4 {
    import where net ~ [$routes+];
    export where source = RTS_STATIC;
  };
  area 0 {
    $(interfaces_to_several "$1")
    interface "$1" { type ptp; hello 1; dead 4; };
  };
}
END
}

# ospf_instance: one more than the least of the network's host numbers; 0 and 64 are those of the hosts' own routes, by FRR
# and by BIRD.
ospf_instance() {
  local least
  least=$(printf '%s\n' "$HOST_INDEX" "${PEER_INDEXES[@]}" | sort -n | head -n 1)
  echo $((least < 63 ? least + 1 : least + 2))
}

# interfaces_to_several PATTERN: behind a switch there are several neighbours, who elect one to speak for the segment.
interfaces_to_several() {
  local interface
  printf '%s\n' "${LINK_INTERFACES[@]}" | sort | uniq -d | while read -r interface; do
    # shellcheck disable=SC2053 # a pattern
    [[ $interface != $1 ]] || echo "interface \"$interface\" { type broadcast; hello 1; dead 4; wait 2; };"
  done
}

# Only the overlay's own routes go to the kernel; the underlay's stay what the plan made them.
common_configuration() {
  cat <<END
log "$bird_directory/bird.log" all;
router id $HOST_ADDRESS;
protocol device { scan time 5; }
protocol kernel {
  ipv4 {
    import none;
    export filter {
      if !(net ~ [$routes+]) then reject;
      krt_prefsrc = $HOST_ADDRESS;
      accept;
    };
  };
}
END
}

ask_bird() { birdc -s "$bird_directory/bird.ctl" "$@"; }

bird_runs() { ask_bird show status >/dev/null 2>&1; }

# Its routes go with it.
stop_bird() {
  bird_runs || return 0
  ask_bird down >/dev/null
  wait_until 10 bird_gone || fatal "BIRD does not end"
  rm -rf "$bird_directory"
}

bird_gone() { ! bird_runs && [[ ! -e $bird_directory/bird.pid ]]; }

# The host's block of addresses, one of /24 for each host of the lab.
host_block() { echo "172.31.$HOST_INDEX.0/24"; }

# every_block_routed: the kernel has a way to the block of every other host.
every_block_routed() { (($(other_blocks | wc -l) >= ${#PEER_NAMES[@]})); }

other_blocks() { ip -4 route show proto bird root "$routes" | grep -v blackhole; }

wait_for_routes() {
  wait_until 60 every_block_routed ||
    fatal "routes to other hosts' containers are missing; there are: $(other_blocks)"
}
