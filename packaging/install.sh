#!/bin/sh
# Installs sqlcached on Linux: the Debian package where there is dpkg and root, else the archive.
#
#   sh install.sh                       from the page of releases
#   sh install.sh --prefix ~/sqlcached  the archive, into a folder
#   sh install.sh --from URL            from another place that has the files of a release
#
# It takes the files of this machine's processor, compares their checksums, and says what it did. It refuses what it
# does not know: another system, another processor, an older C library, a file with another checksum.
set -eu

from=https://github.com/sqlcached/sqlcached/releases/latest/download
prefix=

say() { printf '%s\n' "install.sh: $*"; }
fail() { say "$*" >&2; exit 1; }
usage() { sed -n '2,9s/^# \{0,1\}//p' "$0"; }

while [ $# -gt 0 ]; do
	case $1 in
	--from) [ $# -gt 1 ] || fail "--from needs an address"; from=${2%/}; shift 2 ;;
	--prefix) [ $# -gt 1 ] || fail "--prefix needs a folder"; prefix=$2; shift 2 ;;
	-h | --help) usage; exit 0 ;;
	*) fail "unknown flag $1; --help says which there are" ;;
	esac
done

[ "$(uname -s)" = Linux ] || fail "sqlcached runs on Linux; this is $(uname -s)"
case $(uname -m) in
x86_64) machine=x86_64 debian=amd64 ;;
aarch64 | arm64) machine=aarch64 debian=arm64 ;;
*) fail "there are files for x86_64 and aarch64; this is $(uname -m)" ;;
esac
command -v sha256sum >/dev/null || fail "sha256sum is missing"

# Where the files come to. Debian's installer reads them as another user.
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
chmod 755 "$place"

fetch() {
	if command -v curl >/dev/null; then
		curl --fail --silent --show-error --location --output "$place/$1" "$from/$1"
	elif command -v wget >/dev/null; then
		wget --quiet --output-document="$place/$1" "$from/$1"
	else
		fail "curl or wget is needed"
	fi || fail "cannot fetch $from/$1"
}

# Fetches a file, and compares its checksum with that of the release.
fetch_checked() {
	say "fetching $from/$1"
	fetch "$1"
	(cd "$place" && grep -- "  $1\$" SHA256SUMS | sha256sum --check --quiet --status -) ||
		fail "$1 has another checksum than the release says; nothing was installed"
	say "its checksum is that of the release"
}

# The one file of the release whose name is of this form.
named() {
	found=$(cut -c67- "$place/SHA256SUMS" | grep -x -- "$1" || true)
	[ "$(printf '%s' "$found" | grep -c .)" = 1 ] || fail "the release at $from has no file for $machine"
	printf '%s' "$found"
}

# Whether the C library is of this version or a later one.
has_glibc() {
	have=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d' ' -f2)
	[ -n "$have" ] || fail "this system has no glibc (musl?); use the container image"
	[ "$(printf '%s\n%s\n' "$1" "$have" | sort -V | head -n 1)" = "$1" ] ||
		fail "glibc $1 or later is needed; this is $have"
}

install_archive() {
	file=$(named "sqlcached-[0-9.]*-linux-$machine-glibc[0-9.]*[0-9]\.tar\.gz")
	needed=${file##*-glibc}
	has_glibc "${needed%.tar.gz}"
	[ ! -e "$prefix" ] || [ -d "$prefix" ] || fail "$prefix is no folder"
	fetch_checked "$file"
	mkdir -p "$prefix"
	tar -xzf "$place/$file" -C "$prefix" --strip-components=1 --no-same-owner
	say "installed $("$prefix/bin/sqlcached" --version) in $prefix"
	say "start it: $prefix/bin/sqlcached"
}

install_package() {
	file=$(named "sqlcached_[0-9.]*-[0-9]*_$debian\.deb")
	fetch_checked "$file"
	apt-get install -y "$place/$file"
	say "installed $(sqlcached --version) as a service; settings are in /etc/sqlcached/sqlcached.toml"
	say "try it: printf 'version\\r\\n' | nc -N 127.0.0.1 11211"
}

fetch SHA256SUMS
if [ -n "$prefix" ]; then
	install_archive
elif command -v dpkg >/dev/null && [ "$(id -u)" = 0 ]; then
	install_package
else
	prefix=$HOME/.local/sqlcached
	say "without root, or without dpkg, the archive goes to $prefix"
	install_archive
fi
