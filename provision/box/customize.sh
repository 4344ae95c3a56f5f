#!/bin/bash
# Runs inside a fresh Debian root, before the image's own customize.sh, and makes it one that a virtual machine boots by
# itself: a systemd that starts nothing but a DHCP client and sshd, and the head of a disk, with partition table, boot
# loader, kernel and initrd. Finds in /tmp/box this directory and, under key/, what only this machine's boxes have: the
# public key that may log in, and the key that the machines show.
#
# There is no udev, no D-Bus and no login manager: a machine has one disk and virtio interfaces, and each service left
# out is a second of an emulated boot.
set -euo pipefail

readonly box=/tmp/box boot=/usr/lib/minigts/boot
readonly first_mb=1 boot_mb=63

# Modules that a virtual machine of this kind can need, by their directories.
readonly kept_modules='arch/x86/crypto crypto lib net block fs/overlayfs fs/fuse fs/ext4 fs/jbd2 fs/nls fs/fat drivers/net
  drivers/virtio drivers/block drivers/char drivers/dma'
# Those that the initrd loads; with what they need.
readonly root_modules='virtio_pci virtio_blk ext4 virtio_net'

# Unpacked here once, and not at each boot.
keep_needed_modules() {
  local all=/usr/lib/modules/$version kept=/usr/lib/modules/kept part
  mkdir "$kept"
  cp "$all"/modules.{order,builtin,builtin.modinfo} "$kept/"
  for part in $kept_modules; do
    (cd "$all" && cp -a --parents kernel/"$part" "$kept/" 2>/dev/null) || true
  done
  (cd "$all" && cp -a --parents kernel/fs/mbcache.ko* "$kept/" 2>/dev/null) || true
  rm -rf "$all"
  mv "$kept" "$all"
  find "$all" -name '*.xz' -exec xz -d {} +
  depmod "$version"
}

make_initrd() {
  local root=/tmp/initrd module
  mkdir -p "$root"/{bin,dev,proc,sys,root,modules}
  cp /usr/bin/busybox "$root/bin/"
  install -m 755 "$box/init" "$root/init"
  # shellcheck disable=SC2086
  modprobe -S "$version" -a --show-depends $root_modules | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' |
    while read -r module; do
      cp "$module" "$root/modules/"
      basename "$module" >>"$root/modules/order"
    done
  (cd "$root" && find . | cpio --quiet -o -H newc) >/tmp/initrd.img
}

# A file that is a disk's first part; the root file system is laid behind it.
make_disk_head() {
  local head=$boot/head.img offset=$((first_mb << 20))
  install -d "$boot"
  truncate -s "$((first_mb + boot_mb))M" "$head"
  truncate -s "$((first_mb + boot_mb + MINIGTS_IMAGE_MB))M" "$head"
  sfdisk --quiet "$head" <<<"label: dos
start=${first_mb}MiB, size=${boot_mb}MiB, type=c, bootable
start=$((first_mb + boot_mb))MiB, type=83"
  truncate -s "$((first_mb + boot_mb))M" "$head"
  dd status=none conv=notrunc bs=440 count=1 if=/usr/lib/syslinux/mbr/mbr.bin of="$head"
  mkfs.fat -F 16 -s 16 --offset "$((first_mb * 2048))" "$head" "$((boot_mb * 1024))" >/dev/null
  mcopy -i "$head@@$offset" "/boot/vmlinuz-$version" ::vmlinuz
  mcopy -i "$head@@$offset" /tmp/initrd.img ::initrd
  mcopy -i "$head@@$offset" "$box/syslinux.cfg" ::syslinux.cfg
  syslinux --offset "$offset" --install "$head"
}

# Everything else that a systemd starts by itself is masked: for hardware there is not, screens, first boots, timers.
readonly masked='systemd-hwdb-update.service systemd-update-utmp.service systemd-random-seed.service
  systemd-firstboot.service systemd-machine-id-commit.service ldconfig.service systemd-binfmt.service
  sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount
  dev-hugepages.mount dev-mqueue.mount proc-sys-fs-binfmt_misc.automount systemd-ask-password-console.path
  systemd-ask-password-wall.path kmod-static-nodes.service systemd-tmpfiles-setup-dev.service
  systemd-tmpfiles-setup-dev-early.service systemd-remount-fs.service systemd-modules-load.service
  systemd-user-sessions.service systemd-journal-flush.service systemd-journal-catalog-update.service
  systemd-update-done.service systemd-pcrphase.service systemd-boot-random-seed.service
  systemd-network-generator.service systemd-sysusers.service systemd-logind.service systemd-udevd.service
  systemd-udev-trigger.service systemd-udev-load-credentials.service systemd-udevd-control.socket
  systemd-udevd-kernel.socket systemd-sysctl.service systemd-tmpfiles-setup.service systemd-hostnamed.socket
  systemd-creds.socket systemd-sysext.socket systemd-pcrextend.socket systemd-pcrlock.socket systemd-initctl.socket
  systemd-pcrmachine.service systemd-tpm2-setup.service systemd-tpm2-setup-early.service
  systemd-hibernate-clear.service run-lock.mount getty.target timers.target
  remote-fs.target paths.target docker.service docker.socket containerd.service openvswitch-switch.service
  etcd.service bird.service netperf.service'

start_little() {
  local unit
  rm -rf /etc/systemd/system/*.wants
  install -d /etc/systemd/system/multi-user.target.wants /etc/systemd/system/ssh.service.d /etc/systemd/system-generators
  install -m 644 "$box/management.service" /etc/systemd/system/
  ln -s /etc/systemd/system/management.service /usr/lib/systemd/system/ssh.service \
    /etc/systemd/system/multi-user.target.wants/
  # The unit checks its configuration each time before it starts.
  printf '[Service]\nExecStartPre=\nExecStartPre=install -d /run/sshd\n' >/etc/systemd/system/ssh.service.d/quick.conf
  for unit in $masked; do ln -sf /dev/null "/etc/systemd/system/$unit"; done
  for unit in /usr/lib/systemd/system-generators/*; do ln -s /dev/null "/etc/systemd/system-generators/${unit##*/}"; done
  ln -sf /usr/lib/systemd/system/multi-user.target /etc/systemd/system/default.target
}

# One journal in memory; an identity of the box's own, or each boot would be a first one.
settle_identity() {
  install -d /etc/systemd/journald.conf.d
  printf '[Journal]\nStorage=volatile\nRuntimeMaxUse=8M\n' >/etc/systemd/journald.conf.d/small.conf
  tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
}

# Debian's package gives ping a capability, which the root's copies lose, or leaves it to a sysctl that systemd sets where
# it runs its service for them.
let_users_ping() { chmod u+s /usr/bin/ping; }

# The user whom Vagrant expects, with its usual rights, and root for minigts itself: by one key, made on this machine.
let_users_in() {
  local home
  # Without a password, and not locked either: sshd without PAM lets nobody into an account that is locked.
  useradd --create-home --shell /bin/bash --password '*' vagrant
  echo 'vagrant ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/vagrant
  for home in /root /home/vagrant; do
    install -d -m 700 "$home/.ssh"
    install -m 600 "$box/key/user.pub" "$home/.ssh/authorized_keys"
  done
  chown -R vagrant:vagrant /home/vagrant/.ssh
  rm -f /etc/ssh/ssh_host_*
  install -m 600 "$box/key/host" /etc/ssh/ssh_host_ed25519_key
  install -m 644 "$box/key/host.pub" /etc/ssh/ssh_host_ed25519_key.pub
  install -m 644 "$box/sshd.conf" /etc/ssh/sshd_config
  install -D -m 755 "$box/lease" /usr/lib/minigts/lease
}

# Among it the key that the machines show, which is for root's eyes.
remove_what_was_handed_in() { rm -rf "$box" /tmp/initrd /tmp/initrd.img; }

version=$(basename /usr/lib/modules/*-cloud-amd64)
readonly version
keep_needed_modules
make_initrd
make_disk_head
start_little
settle_identity
let_users_ping
let_users_in
remove_what_was_handed_in
