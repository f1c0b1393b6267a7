<?php
// php-memcached in binary mode, and PHP's sessions with the extension's own defaults. Argument: the port.

function check($held, string $what): void
{
    if (!$held) {
        throw new Exception($what);
    }
}

$port = (int) $argv[1];
$client = new Memcached();
$client->setOption(Memcached::OPT_BINARY_PROTOCOL, true);
$client->addServer('127.0.0.1', $port);
$code = fn() => $client->getResultCode() . ' ' . $client->getResultMessage();

check($client->set('k', ['a' => 1, 'b' => 'two']), 'set: ' . $code());
check($client->get('k') === ['a' => 1, 'b' => 'two'], 'get: ' . $code());
check($client->get('none') === false && $client->getResultCode() === Memcached::RES_NOTFOUND, 'a miss: ' . $code());
check(!$client->add('k', 1) && $client->getResultCode() === Memcached::RES_DATA_EXISTS, 'add of what is there: ' . $code());
check($client->add('fresh', 1, 100) && $client->replace('fresh', 2), 'add and replace');
check(!$client->replace('none', 1), 'replace of nothing');
check($client->increment('n', 3, 10, 100) === 10 && $client->increment('n', 3) === 13, 'increment: ' . $code());
check($client->decrement('n', 20) === 0, 'decrement stops at 0');
check($client->touch('k', 200), 'touch: ' . $code());
$client->setOption(Memcached::OPT_COMPRESSION, false);
check($client->set('text', 'b') && $client->append('text', 'c') && $client->prepend('text', 'a'), 'append and prepend');
check($client->get('text') === 'abc', 'what was joined');
$seen = $client->get('text', null, Memcached::GET_EXTENDED);
check($client->cas($seen['cas'], 'text', 'x'), 'cas: ' . $code());
check(!$client->cas($seen['cas'], 'text', 'y') && $client->getResultCode() === Memcached::RES_DATA_EXISTS, 'a late cas: ' . $code());
$many = [];
for ($number = 0; $number < 500; $number++) {
    $many["many-$number"] = str_repeat("v$number", $number);
}
check($client->setMulti($many, 100), 'setMulti: ' . $code());
check($client->getMulti(array_keys($many)) == $many, 'getMulti: ' . $code());
check(count(array_filter($client->deleteMulti(array_keys($many)), fn($deleted) => $deleted === true)) === 500, 'deleteMulti');
check(!$client->set('large', str_repeat('x', 2 << 20)) && $client->getResultCode() === Memcached::RES_E2BIG, 'too large: ' . $code());
check($client->set('quarter', str_repeat('x', 256 << 10)) && strlen($client->get('quarter')) === 256 << 10, 'a large value');
check($client->delete('k') && !$client->delete('k'), 'delete');
check(current($client->getVersion()) === '1.6.45', 'version');
check(current($client->getStats())['curr_items'] > 0, 'stats');
check($client->flush() && $client->get('text') === false, 'flush');

ini_set('session.save_handler', 'memcached');
ini_set('session.save_path', "127.0.0.1:$port");
ini_set('session.use_cookies', '0');
ini_set('session.cache_limiter', '');
check(ini_get('memcached.sess_binary_protocol') === '1', 'sessions are binary by default');
session_id('somebody');
check(session_start(), 'session_start');
$_SESSION['uid'] = 17;
check(session_write_close(), 'session_write_close');
$_SESSION = [];
check(session_start() && $_SESSION['uid'] === 17, 'the session is there again');
check(session_destroy(), 'session_destroy');
echo "held\n";
