#!/bin/sh
# /init of the initramfs: what it takes to find the disk, and on to it. The drivers probe before insmod ends.
export PATH=/usr/sbin:/usr/bin
mount -t devtmpfs dev /dev
while read -r module; do insmod "$module"; done < /modules.order
mount -t ext4 /dev/vda /disk
exec switch_root /disk /usr/sbin/guest
