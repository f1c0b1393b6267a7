use strict;
use warnings;
use utf8;
use Test::More;

use_ok('Sqlcached');

my $cache = Sqlcached->new(socket => $ENV{SQLCACHED_SOCKET});
$cache->sql("CREATE TABLE frag (page INT, part TEXT, body TEXT, PRIMARY KEY (page, part))
             WITH (prefix = 'frag:', value = 'body', shared_memory = on)");
$cache->sql('CREATE TABLE kinds (k TEXT PRIMARY KEY, i INT, r REAL, t TEXT, b BLOB) WITH (shared_memory = on)');

# What a block dies with.
sub died(&) {
    my ($block) = @_;
    return eval { $block->(); 1 } ? undef : $@;
}

subtest 'values' => sub {
    ok $cache->set('frag:1:a', "x\0\xff", flags => 7), 'set';
    is $cache->get('frag:1:a'), "x\0\xff", 'get';
    is $cache->get('frag:1:none'), undef, 'a miss';
    my ($state, $value, $flags, $cas) = $cache->lookup('frag:1:a');
    is_deeply [$state, $value, $flags], ['hit', "x\0\xff", 7], 'lookup';
    ok $cas > 0, 'its CAS';
    is_deeply [$cache->lookup('frag:1:none')], ['miss'], 'lookup of nothing';
    ok !$cache->add('frag:1:a', 'y'), 'add where there is one';
    ok $cache->cas('frag:1:a', 'y', $cas), 'cas';
    ok !$cache->cas('frag:1:a', 'z', $cas), 'cas too late';
    is $cache->get('frag:1:a'), 'y', 'what cas wrote';
    ok $cache->delete('frag:1:a'), 'delete';
    ok !$cache->delete('frag:1:a'), 'delete of nothing';
    $cache->set('frag:1:past', 'x', expire => -1);
    is $cache->get('frag:1:past'), undef, 'time ends a row';
};

subtest 'numbers' => sub {
    $cache->set('frag:2:n', 40);
    is $cache->increment('frag:2:n', 2), 42, 'increment';
    is $cache->increment('frag:2:n', -50), 0, 'decrement';
    is $cache->increment('frag:2:none'), undef, 'increment of nothing';
};

subtest 'many' => sub {
    my %wanted = map { ("frag:3:$_" => "v$_") } 1 .. 100;
    $cache->set($_, $wanted{$_}) for keys %wanted;
    is_deeply $cache->get_many(keys %wanted, 'frag:3:none'), \%wanted, 'get_many';
    is_deeply $cache->get_many(), {}, 'get_many of none';
};

subtest 'bytes and characters' => sub {
    like died { $cache->set("frag:4:\x{20ac}", 'x') }, qr/Wide character/, 'a key is bytes';
    my $key = "frag:4:\x{20ac}";
    utf8::encode($key);
    $cache->set($key, 'x');
    is_deeply $cache->sql('SELECT part FROM frag WHERE page = 4'), [{ part => "\x{20ac}" }], 'text is characters';
    $cache->set("frag:4:a\r\nflush_all", 'x');
    is $cache->get("frag:4:a\r\nflush_all"), 'x', 'any bytes are a key';
};

subtest 'tables' => sub {
    my $kinds = $cache->table('kinds');
    is $cache->sql('INSERT INTO kinds VALUES (?1, ?2, ?3, ?4, ?5)', 'a', -5, 0.5, "k\x{e9}y\x{20ac}", \"\0\xff"), 1, 'a row';
    is_deeply $kinds->row('a'), { k => 'a', i => -5, r => 0.5, t => "k\x{e9}y\x{20ac}", b => "\0\xff" }, 'of all types';
    is $kinds->row('none'), undef, 'no such row';
    my $frag = $cache->table('frag');
    $cache->set("frag:5:$_", $_) for 'a' .. 'c';
    is $frag->get('5:b'), 'b', 'a composite key';
    is_deeply $frag->get_many('5:a', '5:c', '5:none'), { '5:a' => 'a', '5:c' => 'c' }, 'many';
    is $frag->wait('5:a', 1), 'a', 'nothing to wait for';
    is $frag->wait('5:never', 60), undef, 'nobody to wait for';
    is_deeply [($cache->claim('frag:5:m', 60))[0, 4]], ['due', 'you'], 'a claim that wins';
    is_deeply [($cache->claim('frag:5:m', 60))[0, 4]], ['due', 'another'], 'a claim that comes second';
    is $frag->wait('5:m', 0.01), undef, 'waited in vain';
    $cache->set('frag:5:m', 'made');
    is $frag->wait('5:m', 60), 'made', 'waited for what was made';
};

subtest 'statements' => sub {
    is $cache->sql("INSERT INTO frag VALUES (7, 'a', 'x'), (7, 'b', NULL)"), 2, 'a count';
    is_deeply $cache->sql('SELECT part, body FROM frag WHERE page = ?1 ORDER BY part', 7),
        [{ part => 'a', body => 'x' }, { part => 'b', body => undef }], 'rows';
    is_deeply $cache->sql("SELECT ?1 AS a, ?2 AS b, ?3 AS c", "a'\"b", undef, 17), [{ a => "a'\"b", b => undef, c => 17 }],
        'parameters';
    is_deeply $cache->sql('SELECT 1 WHERE 0'), [], 'no rows';
};

subtest 'errors' => sub {
    my $error = died { $cache->sql('SELEKT') };
    isa_ok $error, 'Sqlcached::Error';
    is $error->sqlstate, '42601', 'its state';
    like "$error", qr/syntax error/, 'its text';
    is died { $cache->table('no_such') }->status, -4, 'no such table';
    is died { $cache->set('k' x 251, 'x') }->status, -1, 'a key that is too long';
    is died { Sqlcached->new(socket => '/nowhere') }->status, -2, 'no daemon';
    like died { Sqlcached->new(sokket => '/nowhere') }, qr/unknown option: sokket/, 'a slip of the pen';
    like died { Sqlcached::get(undef, 'a') }, qr/an open Sqlcached is needed/, 'no object';
    like died { Sqlcached::get($cache->table('frag'), 'a') }, qr/an open Sqlcached is needed/, 'another object';
};

subtest 'processes' => sub {
    $cache->set('frag:9:parent', 'p');
    my @children = map {
        my $child = fork // die "fork: $!";
        if (!$child) {
            my $good = $cache->get('frag:9:parent') eq 'p';
            for my $turn (1 .. 50) {
                $cache->set("frag:9:$_", $turn);
                $good &&= $cache->get("frag:9:$_") eq $turn;
            }
            # No END blocks and destructors of the parent's: they print its plan.
            require POSIX;
            POSIX::_exit($good ? 0 : 1);
        }
        $child;
    } 1 .. 4;
    is_deeply $cache->sql('SELECT ?1 AS n', $_), [{ n => $_ }], "the parent's answer $_" for 1 .. 20;
    is_deeply [map { waitpid $_, 0; $? } @children], [0, 0, 0, 0], 'children read and write';
};

done_testing;
