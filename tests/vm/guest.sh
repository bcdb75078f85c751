#!/bin/sh
# The first process of the emulated machine, as root: the file systems that every Debian has, slots as an
# administrator makes them, then the attempts of each user. What is reported goes to the second serial port;
# the console, with what the kernel says, is the first. Ends with the machine off, whatever happened.
export PATH=/usr/sbin:/usr/bin LC_ALL=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
# As systemd does it: version 2, with every controller.
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
for folder in /dev/shm /run /tmp; do mount -t tmpfs -o mode=1777 tmpfs "$folder"; done
# As kmod and udev make it on every Debian: the driver is loaded when somebody opens it.
mknod -m 660 /dev/loop-control c 10 237
stty -F /dev/ttyS1 raw
exec < /dev/null > /dev/ttyS1

# attempts NAME UID STORAGE
attempts() {
  mkdir -p "/var/tmp/$1"
  chown "$2:$2" "/var/tmp/$1"
  env -i PATH="$PATH" HOME="/var/tmp/$1" LC_ALL=C.UTF-8 \
    setpriv --reuid "$2" --regid "$2" --clear-groups sh /usr/share/attempts "$1" /usr/bin "/var/tmp/$1" "$3"
}

printf '@begin kernel\n'
uname -r
printf '@end kernel 0\n'
attempts memory 12345 memory
attempts root 0 auto
printf '@begin host-setup\n'
cofferdam host-setup --user ada --slots 1 --bytes 33554432 --inodes 1000 2>&1
printf '@end host-setup %s\n' $?
attempts slot 12345 slot
printf '@done\n'
sync
echo o > /proc/sysrq-trigger
exec sleep infinity # the first process must not end before the machine does
