<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests;

/** A daemon of a test's own, which is killed and started again with its rows. */
final class Daemon
{
    /** Seconds for it to serve. It takes milliseconds; a loaded machine needs more. */
    private const PATIENCE = 60.0;

    public readonly int $port;
    public readonly int $sqlPort;
    public readonly string $folder;
    /** @var list<string> */
    private readonly array $flags;

    /** @var ?resource */
    private $process = null;

    public function __construct(string ...$flags)
    {
        $this->flags = array_values($flags);
        $this->port = self::freePort();
        $this->sqlPort = self::freePort();
        $parent = is_dir('/dev/shm') ? '/dev/shm' : sys_get_temp_dir();
        $this->folder = "$parent/sqlcached-php-" . getmypid() . "-{$this->port}";
        mkdir($this->folder);
        $this->start();
    }

    public static function freePort(): int
    {
        $free = stream_socket_server('tcp://127.0.0.1:0');
        $port = (int) explode(':', (string) stream_socket_get_name($free, false))[1];
        fclose($free);
        return $port;
    }

    /**
     * @param array<string, mixed> $more
     *
     * @return array<string, mixed>
     */
    public function options(array $more = []): array
    {
        return $more + ['location' => "127.0.0.1:{$this->port}", 'state' => "{$this->folder}/state", 'log' => static fn () => null] + Place::PATIENCE;
    }

    public function start(string ...$flags): void
    {
        $this->run($flags);
        $end = microtime(true) + self::PATIENCE;
        while (($stream = @stream_socket_client("tcp://127.0.0.1:{$this->port}")) === false) {
            if (microtime(true) > $end || !proc_get_status($this->process)['running']) {
                throw new \LogicException('the daemon does not serve');
            }
            usleep(2_000);
        }
        fclose($stream);
    }

    /** @param list<string> $flags */
    public function run(array $flags = []): void
    {
        $program = getenv('SQLCACHED_PROGRAM') ?: throw new \LogicException('SQLCACHED_PROGRAM names no program');
        $command = [$program, '-p', (string) $this->port, '-s', "{$this->folder}/sock", '--arena', "{$this->folder}/arena",
            '--sql-port', (string) $this->sqlPort, '--sql-socket-dir', 'none', '--http-port', '0', ...$this->flags, ...$flags];
        $null = ['file', '/dev/null', 'w'];
        $this->process = proc_open($command, [['file', '/dev/null', 'r'], $null, $null], $pipes) ?: null;
    }

    public function kill(): void
    {
        if ($this->process !== null) {
            proc_terminate($this->process, SIGKILL);
            while (proc_get_status($this->process)['running']) {
                usleep(1_000);
            }
            proc_close($this->process);
            $this->process = null;
        }
    }

    public function end(): void
    {
        $this->kill();
        foreach (array_merge(glob("{$this->folder}/state/*") ?: [], glob("{$this->folder}/arena*") ?: [], ["{$this->folder}/sock"]) as $file) {
            @unlink($file);
        }
        @rmdir("{$this->folder}/state");
        @rmdir($this->folder);
    }
}
