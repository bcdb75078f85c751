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
# As ifupdown and systemd do it: lo is up, and the hard limits are no lower than what a box has. SIOCSIFFLAGS is
# 0x8914, IFF_UP is 1: netdevice(7).
perl -e 'my $request = pack("a16 s x22", "lo", 1); socket(my $any, 2, 2, 0) or die;
  ioctl($any, 0x8914, $request) or die "lo: $!"'
ulimit -n 524288
ulimit -l unlimited
stty -F /dev/ttyS1 raw
exec < /dev/null > /dev/ttyS1

# attempts NAME UID GROUP STORAGE [PART...]: as that user, from a group of that name.
attempts() {
  name=$1 user=$2 group=$3; shift 3
  mkdir -p "/var/tmp/$name"
  chown "$user:$user" "/var/tmp/$name"
  sh -c 'echo 0 > "$0/cgroup.procs"; exec "$@"' "/sys/fs/cgroup/$group" \
    env -i PATH="$PATH" HOME="/var/tmp/$name" LC_ALL=C.UTF-8 \
    setpriv --reuid "$user" --regid "$user" --clear-groups \
    sh /usr/share/attempts "$name" /usr/bin "/var/tmp/$name" "$@"
}
# Every control group there is.
groups() {
  printf '@begin %s/groups\n' "$1"
  (cd /sys/fs/cgroup && find . -mindepth 1 -type d | sort)
  printf '@end %s/groups 0\n' "$1"
  printf '@begin %s/uptime\n' "$1"
  cat /proc/uptime
  printf '@end %s/uptime 0\n' "$1"
}

printf '@begin kernel\n'
uname -r
printf '@end kernel 0\n'
attempts memory 12345 . memory reads
attempts root 0 . auto bounds gate
groups root
printf '@begin host-setup\n'
cofferdam host-setup --user ada --slots 1 --bytes 33554432 --inodes 1000 2>&1
printf '@end host-setup %s\n' $?
attempts slot 12345 cofferdam/12345/sessions auto bounds gate
groups slot
# User namespaces off, as an administrator does it.
echo 0 > /proc/sys/user/max_user_namespaces
attempts refused-root 0 . auto refused
attempts refused-slot 12345 cofferdam/12345/sessions auto refused
groups refused
printf '@done\n'
sync
echo o > /proc/sysrq-trigger
exec sleep infinity # the first process must not end before the machine does
