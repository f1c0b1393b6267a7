<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Own;

use PHPUnit\Framework\TestCase;
use Sqlcached\Cache\Client;
use Sqlcached\Cache\Psr16;
use Sqlcached\Cache\Tests\Daemon;

/** Connections that outlive their scripts, in PHP's own web server. */
final class PersistentTest extends TestCase
{
    /** @var resource */
    private $server;
    private int $port;
    private Daemon $daemon;

    protected function setUp(): void
    {
        $this->daemon = new Daemon();
        $this->port = Daemon::freePort();
        $null = ['file', '/dev/null', 'w'];
        $command = [PHP_BINARY, '-d', 'display_errors=0', '-S', "127.0.0.1:{$this->port}", dirname(__DIR__) . '/pages/index.php'];
        $environment = ['SQLCACHED_PORT' => (string) $this->daemon->port] + getenv();
        $this->server = proc_open($command, [['file', '/dev/null', 'r'], $null, $null], $pipes, null, $environment);
        $end = microtime(true) + 60;
        while (($stream = @stream_socket_client("tcp://127.0.0.1:{$this->port}")) === false && microtime(true) < $end) {
            usleep(2_000);
        }
        fclose($stream);
    }

    protected function tearDown(): void
    {
        proc_terminate($this->server, SIGKILL);
        proc_close($this->server);
        $this->daemon->end();
    }

    private function page(string $path): string
    {
        return (string) @file_get_contents("http://127.0.0.1:{$this->port}/$path");
    }

    private function connections(): int
    {
        return (int) (new Client($this->daemon->options()))->stats()['total_connections'];
    }

    public function testScriptsShareAConnection(): void
    {
        $this->assertSame('true', $this->page('set/a'));
        $before = $this->connections();
        for ($round = 0; $round < 20; $round++) {
            $this->assertSame(md5(str_repeat('a', 100_000)), $this->page('get/a'));
        }
        $this->assertSame($before, $this->connections());
    }

    public function testARestartIsNotSeen(): void
    {
        $this->assertSame('true', $this->page('set/a'));
        $this->daemon->kill();
        $this->assertSame(md5(''), $this->page('get/a'));
        $this->daemon->start();
        $this->assertSame(md5(str_repeat('a', 100_000)), $this->page('get/a'));
        $this->daemon->kill();
        $this->daemon->start('--cold');
        $this->assertSame(md5(''), $this->page('get/a'));
        $this->assertSame('true', $this->page('set/a'));
        $this->assertSame(1, (new Client($this->daemon->options()))->sql('SELECT count(*) AS n FROM pages')[0]['n']);
    }

    /** The next script once read the rest of the answer for its own. */
    public function testAScriptThatDiesWithinAnAnswerHarmsNone(): void
    {
        $this->page('set/b');
        (new Psr16($this->daemon->options(), 'pages'))->set('large', random_bytes(1_000_000) . str_repeat('x', 40_000));
        for ($round = 0; $round < 10; $round++) {
            $this->assertSame('', $this->page('die/large'));
            $this->assertSame(md5(str_repeat('b', 100_000)), $this->page('get/b'));
        }
        $this->assertSame('stopped', $this->page('late/b'));
        $this->assertSame(md5(str_repeat('b', 100_000)), $this->page('get/b'));
    }
}
