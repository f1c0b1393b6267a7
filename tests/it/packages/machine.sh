#!/bin/sh
# Boots a copy of this machine in which nothing runs but systemd, and runs a script there: machine.sh SCRIPT FILE...
# The files are in /packages there. What the script says is printed. The machine itself is only read: what is written
# there goes to memory. It must run as root in a mount namespace of its own: unshare --mount machine.sh ...
set -eu
script=$1
shift
place=$(mktemp --directory)
mount -t tmpfs tmpfs "$place"
mkdir "$place/written" "$place/work" "$place/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/written,workdir=$place/work" "$place/root"
root=$place/root

mkdir "$root/packages"
cp "$@" "$root/packages"
cp "$script" "$root/packages/script"
# What keeps packages from starting services while an image is built.
rm -f "$root/usr/sbin/policy-rc.d"
ln -sf /dev/null "$root/etc/systemd/system/timers.target"
cat > "$root/etc/systemd/system/trial.service" <<END
[Unit]
Requires=basic.target
After=basic.target
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'exec sh -eux /packages/script >/packages/said 2>&1'
TimeoutStartSec=120
END
timeout 180 systemd-nspawn --quiet --register=no --keep-unit --private-network --directory="$root" \
	--machine="packages-$$" --boot -- --unit=trial.service < /dev/null > "$place/booted" 2>&1 || cat "$place/booted"
cat "$root/packages/said"
umount "$root" "$place" && rmdir "$place"
