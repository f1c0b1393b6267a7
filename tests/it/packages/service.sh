# In a machine of its own: the package is installed, works as a service, is upgraded, removed and purged.
ask() {
	printf "$1" | nc -N -w 5 127.0.0.1 11211
}

sql() {
	psql -h 127.0.0.1 -p 5433 -U any -AtXqc "$1"
}

pid() {
	systemctl show --property MainPID --value sqlcached
}

# Installed by the installer, it serves at once, as a user of its own that may nothing.
sh /packages/install.sh --from file:///packages
systemctl is-active sqlcached
systemctl is-enabled sqlcached
test "$(stat -c %U /proc/$(pid))" = sqlcached
grep -q '^CapEff:.0*$' "/proc/$(pid)/status"
ask 'set hello 0 0 5\r\nworld\r\n' | grep STORED
sql "CREATE TABLE page (id INT PRIMARY KEY, body TEXT) WITH (prefix = 'page:', value = 'body')"
sql "INSERT INTO page VALUES (17, 'seventeen')"
man --where sqlcached
sqlcached --version

# From here to the crash somebody connects all the time.
cat > /packages/connect.py <<'END'
import os, socket, time
made, refused = 0, []
while not os.path.exists("/packages/enough"):
    try:
        socket.create_connection(("127.0.0.1", 11211), 10).close()
        made += 1
    except OSError as error:
        refused.append(str(error))
    time.sleep(0.001)
print(len(refused), made > 500, *refused[:3])
END
python3 /packages/connect.py > /packages/connected &

# Settings are in the configuration file and in the flags, and a change stays.
sed -i 's/^#max_connections = .*/max_connections = 77/' /etc/sqlcached/sqlcached.toml
systemctl reload sqlcached
ask 'stats settings\r\n' | grep 'STAT maxconns 77'
echo 'OPTIONS="-t 3"' > /etc/default/sqlcached
systemctl restart sqlcached
ask 'stats settings\r\n' | grep 'STAT num_threads 3'
ask 'get hello\r\n' | grep world

# An upgrade keeps the rows and the settings.
before=$(pid)
dpkg --install /packages/sqlcached_*-2_*.deb
test "$(pid)" != "$before"
ask 'get hello\r\n' | grep world
test "$(sql 'SELECT body FROM page WHERE id = 17')" = seventeen
ask 'stats settings\r\n' | grep 'STAT maxconns 77'
journalctl --unit sqlcached --output cat | grep 'warm start'

# So does a crash.
before=$(pid)
kill -KILL "$before"
for try in $(seq 50); do
	test "$(pid)" != "$before" && systemctl is-active sqlcached && break
	sleep 0.1
done
ask 'get hello\r\n' | grep world
touch /packages/enough
wait
test "$(cat /packages/connected)" = "0 True"

# Removed, it leaves no process, no program and no rows, and the settings stay.
ls "/dev/shm/sqlcached-$(id -u sqlcached)"
dpkg --remove sqlcached
! systemctl is-active sqlcached
test ! -e /usr/bin/sqlcached
test ! -e "/dev/shm/sqlcached-$(id -u sqlcached)"
grep 'max_connections = 77' /etc/sqlcached/sqlcached.toml

# Purged, it leaves nothing.
dpkg --purge sqlcached
test ! -e /etc/sqlcached
test ! -e /etc/default/sqlcached
test ! -e /var/lib/sqlcached

# A memcached may be there. The port is taken then, and nothing else is wrong.
nc -lk 127.0.0.1 11211 &
dpkg --install /packages/sqlcached_*-2_*.deb
! systemctl is-active sqlcached
echo 'OPTIONS="-p 11300"' > /etc/default/sqlcached
systemctl reset-failed sqlcached
systemctl restart sqlcached
systemctl is-active sqlcached
echo every step was taken
