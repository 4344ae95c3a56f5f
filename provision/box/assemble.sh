#!/bin/bash
# Lays a box's disk together: the head that customize.sh made (partition table, boot loader, boot partition), then the
# root file system; and keeps of the image's build what a box needs.
#
#   assemble.sh PLACE     PLACE holds boot/head.img, root.ext4; gets box.img (qcow2)
set -euo pipefail

readonly place=$1

lay_together() {
  local disk=$place/disk.raw
  cp "$place/boot/head.img" "$disk"
  dd status=none conv=sparse,notrunc bs=1M seek="$(($(stat -c %s "$disk") >> 20))" if="$place/root.ext4" of="$disk"
  truncate -s "$(($(stat -c %s "$place/boot/head.img") + $(stat -c %s "$place/root.ext4")))" "$disk"
  qemu-img convert -f raw -O qcow2 "$disk" "$place/box.img"
}

remove_the_rest() {
  rm -f "$place/disk.raw" "$place/root.ext4"
  find "$place/boot" -type f ! -name head.img -delete
}

lay_together
remove_the_rest
