#!/bin/sh
# Runs an image's program as an engine of containers does: container.sh ARCHIVE IMAGE FOLDER [FLAG...]
# The image is unpacked into the folder, and the program sees nothing else. It must run as root in a mount namespace.
set -eu
archive=$1 image=$2 folder=$3
shift 3
mkdir "$folder/layout"
tar -xf "$archive" -C "$folder/layout"
umoci unpack --image "$folder/layout:$image" "$folder/bundle"
root=$folder/bundle/rootfs
mkdir -p "$root/dev/shm" "$root/proc"
mount -t tmpfs -o size=64m tmpfs "$root/dev/shm"
mount -t proc proc "$root/proc"
# What the image says: as whom, with which environment, which program.
said() {
	python3 -c "import json; p = json.load(open('$folder/bundle/config.json'))['process']; print($1)"
}
exec env --ignore-environment $(said "' '.join(p['env'])") chroot --userspec="$(said "'%d:%d' % (p['user']['uid'], p['user']['gid'])")" \
	"$root" $(said "' '.join(p['args'])") "$@"
