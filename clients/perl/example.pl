use strict;
use warnings;
use Sqlcached;

my $cache = Sqlcached->new(socket => $ENV{SQLCACHED_SOCKET});
$cache->sql("CREATE TABLE frag (page INT, part TEXT, body TEXT, PRIMARY KEY (page, part))
             WITH (prefix = 'frag:', value = 'body', shared_memory = on)");
$cache->set('frag:17:head', 'hello', expire => 600);
print $cache->get('frag:17:head'), "\n";
$cache->sql('DELETE FROM frag WHERE page = ?1', 17);
