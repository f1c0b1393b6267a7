<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Own;

use PHPUnit\Framework\TestCase;
use Sqlcached\Cache\Definition;
use Sqlcached\Cache\Exception\RefusedException;
use Sqlcached\Cache\Exception\UnavailableException;
use Sqlcached\Cache\Psr16;
use Sqlcached\Cache\Table;
use Sqlcached\Cache\Tests\Daemon;

/** Daemons that ask for a password, that speak TLS, and the Unix socket. */
final class AccessTest extends TestCase
{
    private string $folder;
    private ?Daemon $daemon = null;

    protected function setUp(): void
    {
        $this->folder = sys_get_temp_dir() . '/sqlcached-php-access-' . getmypid() . '-' . bin2hex(random_bytes(4));
        mkdir($this->folder, 0700);
    }

    protected function tearDown(): void
    {
        $this->daemon?->end();
        array_map(unlink(...), glob("{$this->folder}/*") ?: []);
        rmdir($this->folder);
    }

    private static function command(string ...$command): void
    {
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]], $pipes);
        $said = stream_get_contents($pipes[1]);
        if (proc_close($process) !== 0) {
            throw new \LogicException(implode(' ', $command) . ": $said");
        }
    }

    /** @return iterable<array{0: bool}> */
    public function kinds(): iterable
    {
        yield 'connections of the process' => [false];
        yield 'persistent connections' => [true];
    }

    /** @dataProvider kinds */
    public function testRoles(bool $persistent): void
    {
        // The superuser has the name of the user who runs the daemon.
        $operator = posix_getpwuid(posix_geteuid())['name'];
        file_put_contents("{$this->folder}/rules", "host all $operator 127.0.0.1/32 trust\nhost all all all password protocol=memcached\n");
        $this->daemon = new Daemon('--hba-file', "{$this->folder}/rules", '--roles-file', "{$this->folder}/roles");
        foreach (["app PASSWORD 'secret' IN ROLE pg_read_all_data, pg_write_all_data", "report PASSWORD 'look' IN ROLE pg_read_all_data",
            "boss PASSWORD 'secret' SUPERUSER"] as $role) {
            self::command('psql', '-X', '-q', '-h', '127.0.0.1', '-p', (string) $this->daemon->sqlPort, '-U', $operator, '-d', 'x', '-c', "CREATE USER $role");
        }
        $as = fn (string $user, string $password): array => $this->daemon->options(
            ['user' => $user, 'password' => $password, 'persistent' => $persistent],
        );
        // A prefix is the superuser's to give.
        try {
            (new Table($as('app', 'secret'), new Definition('cache')))->get('a');
            $this->fail('no error');
        } catch (RefusedException $why) {
            $this->assertStringContainsString('a superuser must make the table cache', $why->getMessage());
            $this->assertStringContainsString('CREATE TABLE IF NOT EXISTS', $why->getMessage());
        }
        $this->assertTrue((new Psr16($as('boss', 'secret')))->set('a', 1, null, ['t']));
        $app = new Psr16($as('app', 'secret'));
        $this->assertSame(1, $app->get('a'));
        $this->assertTrue($app->set('b', 2));
        $this->assertTrue($app->invalidateTags(['t']));
        $this->assertNull($app->get('a'));
        $report = new Psr16($as('report', 'look'));
        $this->assertSame(2, $report->get('b'));
        $this->assertFalse($report->set('b', 3));
        $this->assertFalse($report->clear());
        $this->assertSame(2, $app->get('b'));
        foreach ([[], ['user' => 'app', 'password' => 'wrong']] as $options) {
            try {
                (new Table($this->daemon->options($options), new Definition('cache')))->get('b');
                $this->fail('no error');
            } catch (RefusedException) {
            }
        }
        $this->assertTrue($app->clear());
        $this->assertNull($app->get('b'));
    }

    /** @dataProvider kinds */
    public function testTls(bool $persistent): void
    {
        [$certificate, $key] = ["{$this->folder}/cert.pem", "{$this->folder}/key.pem"];
        self::command('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj',
            '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', $key, '-out', $certificate);
        $this->daemon = new Daemon('-Z', '-o', "ssl_chain_cert=$certificate,ssl_key=$key");
        $cache = new Psr16($this->daemon->options(['tls' => ['cafile' => $certificate], 'persistent' => $persistent]));
        $values = array_fill_keys(array_map(static fn (int $number): string => "k$number", range(0, 29)), str_repeat('x', 20_000));
        $this->assertTrue($cache->setMultiple($values));
        $this->assertSame($values, $cache->getMultiple(array_keys($values)));
        $this->assertTrue($cache->set('large', str_repeat('y', 1_000_000), 10, ['t']));
        $this->assertSame(1_000_000, strlen((string) $cache->get('large')));
        foreach ([true, false] as $tls) {
            try {
                (new Table($this->daemon->options(['tls' => $tls, 'timeout' => 1]), new Definition('cache')))->get('large');
                $this->fail('no error');
            } catch (UnavailableException) {
                $this->addToAssertionCount(1);
            }
        }
    }

    /** @dataProvider kinds */
    public function testTheUnixSocket(bool $persistent): void
    {
        $this->daemon = new Daemon();
        $cache = new Psr16(['location' => "{$this->daemon->folder}/sock", 'persistent' => $persistent] + $this->daemon->options());
        $this->assertTrue($cache->set('a', 1, 10, ['t']));
        $this->assertSame(1, $cache->get('a'));
        $this->daemon->kill();
        $this->assertNull($cache->get('a'));
        $this->daemon->start();
        $this->assertSame(1, $cache->get('a'));
    }
}
