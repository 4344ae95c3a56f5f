# shellcheck shell=bash
# The measuring container in the host's own network.

start() {
  run_measuring_container host
  wait_for_servers
  echo "ADDRESS=$HOST_ADDRESS"
  echo "MTU=$OVERLAY_MTU"
  echo "ENTER=$(container_process)"
}
