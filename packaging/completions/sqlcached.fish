# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_sqlcached_global_optspecs
    string join \n config= print-config i/license d/daemon k/lock-memory L/enable-largepages r/enable-coredumps C/disable-cas f/slab-growth-factor= n/slab-min-size= R/max-reqs-per-event= B/protocol= U/udp-port= N/napi_ids= F/disable-flush-all X/disable-dumping W/disable-watch M/disable-evictions o/extended= p/port= l/listen-addresses= s/unix-socket-path= sql-port= sql-socket-dir= http-port= http-listen-addresses= http-hosts= a/unix-socket-permissions= c/max-connections= max-connections-per-address= t/threads= idle-timeout= flush-enabled= dump-enabled= watch-enabled= A/enable-shutdown= b/listen-backlog= D/stat-delimiter= u/user= P/pid-file= hba-file= ident-file= roles-file= Y/auth-file= authentication-timeout= S/enable-sasl= Z/ssl= ssl-cert-file= ssl-key-file= ssl-ca-file= ssl-crl-file= ssl-verify-mode= ssl-min-protocol-version= m/memory-mb= evictions= dead-memory-percent= I/max-item-size= e/arena= shared-memory-file= huge-pages= cold= init-file= sql-threads= statement-timeout= native-execution= max-result-size= v/verbosity log-min-duration-statement= log-parameter-max-length= audit-file= h/help V/version
end

function __fish_sqlcached_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_sqlcached_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_sqlcached_using_subcommand
    set -l cmd (__fish_sqlcached_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c sqlcached -n "__fish_sqlcached_needs_command" -l config -d 'Configuration file to read; also SQLCACHED_CONFIG.' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s f -l slab-growth-factor -d 'No effect: memory is not divided into slab classes.' -r
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s n -l slab-min-size -d 'No effect: memory is not divided into slab classes.' -r
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s R -l max-reqs-per-event -d 'No effect: connections take turns by a fixed limit.' -r
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s B -l protocol -d 'No effect: both of memcached\'s protocols are served; the first byte of a connection decides.' -r
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s U -l udp-port -d 'No effect: there is no UDP.' -r
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s N -l napi_ids -d 'No effect: connections are distributed to the threads in turn.' -r
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s o -l extended -d 'memcached\'s extended options, separated by commas. idle_timeout=SECONDS and those that begin with ssl_ have an effect; the others tune memcached\'s internals.' -r
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s p -l port -d 'TCP port for memcached clients and the sql command' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s l -l listen-addresses -d 'Addresses to listen on, separated by commas, with or without a port (127.0.0.1:11212)' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s s -l unix-socket-path -d 'Unix socket to listen on' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l sql-port -d 'TCP port for PostgreSQL clients' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l sql-socket-dir -d 'Directory of the Unix socket for PostgreSQL clients, .s.PGSQL.<sql_port>' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l http-port -d 'TCP port for HTTP: the console, metrics and health (docs/operations.md)' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l http-listen-addresses -d 'Addresses to listen on for HTTP' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l http-hosts -d 'Names by which HTTP clients may call the server, separated by commas' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s a -l unix-socket-permissions -d 'Access to the Unix sockets, as an octal mode like that of chmod' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s c -l max-connections -d 'Largest number of open connections' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l max-connections-per-address -d 'Largest number of open connections from one IP address' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s t -l threads -d 'Threads that serve memcached commands' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l idle-timeout -d 'Closes a connection that has sent nothing for this long' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l flush-enabled -d 'Whether memcached clients may use flush_all' -r -f -a "on\t''
off\t''"
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l dump-enabled -d 'Whether memcached clients may list keys: stats cachedump, lru_crawler metadump and mgdump' -r -f -a "on\t''
off\t''"
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l watch-enabled -d 'Whether memcached clients may use watch, which reports other clients\' commands' -r -f -a "on\t''
off\t''"
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s A -l enable-shutdown -d 'Whether memcached clients may stop the daemon with the command shutdown' -r -f -a "on\t''
off\t''"
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s b -l listen-backlog -d 'Connections that wait in the kernel until they are accepted' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s D -l stat-delimiter -d 'Counts commands by the part of the key before this character (stats detail)' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s u -l user -d 'User to switch to if root starts the daemon' -r -f -a "(__fish_complete_users)"
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s P -l pid-file -d 'File with the process id while the daemon serves' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l hba-file -d 'File with the rules of who may connect, in the form of pg_hba.conf' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l ident-file -d 'File with the maps that rules use (map=name): which roles a user of the system or a certificate may have, in the form of pg_ident.conf' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l roles-file -d 'File in which the daemon keeps roles and what proves their passwords' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s Y -l auth-file -d 'File with a line user:password for each user, as memcached has it' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l authentication-timeout -d 'A client that has not agreed on keys (TLS) and proved its role after this time is disconnected' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s S -l enable-sasl -d 'Memcached clients must prove a role or user, by either of memcached\'s protocols, even where a rule trusts them' -r -f -a "on\t''
off\t''"
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s Z -l ssl -d 'TLS: memcached clients must speak it on TCP ports' -r -f -a "on\t''
off\t''"
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l ssl-cert-file -d 'File with the server\'s certificate and those between it and its authority, in PEM' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l ssl-key-file -d 'File with the private key, in PEM without a passphrase' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l ssl-ca-file -d 'File with the authorities that may have signed clients\' certificates, in PEM' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l ssl-crl-file -d 'File with lists of certificates that the authorities in ssl_ca_file have revoked, in PEM, one of each authority' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l ssl-verify-mode -d 'Certificates of memcached clients, where there is ssl_ca_file: 0 does not ask for one, 1 asks, 2 and 3 demand one' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l ssl-min-protocol-version -d 'The oldest version of TLS that clients may speak' -r -f -a "TLSv1.2\t''
TLSv1.3\t''"
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s m -l memory-mb -d 'Memory for rows and their indexes, in MiB' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l evictions -d 'Whether old rows are evicted for new ones when memory is full' -r -f -a "on\t''
off\t''"
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l dead-memory-percent -d 'Dead memory that a table may keep, in per cent of its live rows, before sparse segments are compacted although memory is free' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s I -l max-item-size -d 'Largest value or row that can be stored' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s e -l arena -d 'File that holds the rows and survives a stop of the daemon' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l shared-memory-file -d 'File that holds the tables WITH (shared_memory = on)' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l huge-pages -d 'Whether rows and the hash index are kept on pages of 2 MiB' -r -f -a "try\t''
off\t''"
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l cold -d 'Starts empty even if the arena could be used again' -r -f -a "on\t''
off\t''"
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l init-file -d 'File with SQL statements, separated by semicolons' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l sql-threads -d 'Threads that run SQL statements' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l statement-timeout -d 'Stops a SQL statement that has run for this long' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l native-execution -d 'Runs common statements without SQLite' -r -f -a "on\t''
off\t''"
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l max-result-size -d 'Largest result of a SQL statement, in bytes sent' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l log-min-duration-statement -d 'Logs SQL statements that take this long or longer, and shows the last of them in sqlcached_slow' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l log-parameter-max-length -d 'Bytes of each parameter that the log of slow statements, sqlcached_slow and sqlcached_invalidations show, and then statements with their literals' -r -f
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l audit-file -d 'File to which the daemon adds a line of JSON for each login, refusal, definition, grant and invalidation by a client (docs/security.md)' -r -F
complete -c sqlcached -n "__fish_sqlcached_needs_command" -l print-config -d 'Prints a configuration file with every setting, explained, and its default.'
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s i -l license -d 'Prints the licence.'
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s d -l daemon -d 'Runs in the background; the command returns when the daemon serves. Do not use it with a service manager.'
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s k -l lock-memory -d 'No effect: rows are in shared memory; the mount decides about swap.'
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s L -l enable-largepages -d 'No effect: large pages are used if the system has them (huge_pages).'
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s r -l enable-coredumps -d 'No effect: the system\'s limit applies (ulimit -c).'
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s C -l disable-cas -d 'No effect: every row has a CAS value, which takes no extra memory.'
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s F -l disable-flush-all -d 'The same as --flush-enabled=off.'
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s X -l disable-dumping -d 'The same as --dump-enabled=off.'
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s W -l disable-watch -d 'The same as --watch-enabled=off.'
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s M -l disable-evictions -d 'The same as --evictions=off.'
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s v -l verbosity -d 'Amount of logging to standard error: 0 the start and warnings, 1 also reloads and refusals, 2 debugging, 3 everything'
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s h -l help -d 'Print help'
complete -c sqlcached -n "__fish_sqlcached_needs_command" -s V -l version -d 'Print version'
complete -c sqlcached -n "__fish_sqlcached_needs_command" -f -a "top" -d 'Shows hit ratio, operations, memory and tables of a running server, each second.'
complete -c sqlcached -n "__fish_sqlcached_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sqlcached -n "__fish_sqlcached_using_subcommand top" -s H -l host -d 'Address of the server, or the directory of its Unix socket; also PGHOST.' -r
complete -c sqlcached -n "__fish_sqlcached_using_subcommand top" -s p -l port -d 'Its port for PostgreSQL clients; also PGPORT.' -r
complete -c sqlcached -n "__fish_sqlcached_using_subcommand top" -s U -l user -d 'The role to connect as; also PGUSER, and then the name of the user.' -r
complete -c sqlcached -n "__fish_sqlcached_using_subcommand top" -s s -l sort -d 'The order of the tables.' -r -f -a "operations\t''
hits\t''
rows\t''
bytes\t''
evictions\t''
name\t''"
complete -c sqlcached -n "__fish_sqlcached_using_subcommand top" -s i -l interval -d 'Seconds between two looks.' -r
complete -c sqlcached -n "__fish_sqlcached_using_subcommand top" -l once -d 'Prints one interval as text and ends.'
complete -c sqlcached -n "__fish_sqlcached_using_subcommand top" -l batch -d 'Prints each interval as text, for pipes.'
complete -c sqlcached -n "__fish_sqlcached_using_subcommand top" -s h -l help -d 'Print help'
complete -c sqlcached -n "__fish_sqlcached_using_subcommand help; and not __fish_seen_subcommand_from top help" -f -a "top" -d 'Shows hit ratio, operations, memory and tables of a running server, each second.'
complete -c sqlcached -n "__fish_sqlcached_using_subcommand help; and not __fish_seen_subcommand_from top help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
