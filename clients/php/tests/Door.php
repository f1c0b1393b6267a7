<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests;

/** A port before a daemon's that closes its first connections, as a daemon that restarts does, and hands on the next one. */
final class Door
{
    public readonly int $port;
    private readonly int $child;

    public function __construct(int $to, int $closed)
    {
        $listener = stream_socket_server('tcp://127.0.0.1:0');
        $this->port = (int) explode(':', (string) stream_socket_get_name($listener, false))[1];
        $this->child = pcntl_fork();
        if ($this->child === 0) {
            for ($number = 0; $number < $closed; $number++) {
                fclose(stream_socket_accept($listener, -1));
            }
            self::handOn(stream_socket_accept($listener, -1), stream_socket_client("tcp://127.0.0.1:$to"));
            // Nothing of the test may run here.
            posix_kill((int) getmypid(), SIGKILL);
        }
        fclose($listener);
    }

    /**
     * @param resource $client
     * @param resource $server
     */
    private static function handOn($client, $server): void
    {
        while (true) {
            [$read, $write, $except] = [[$client, $server], null, null];
            stream_select($read, $write, $except, null);
            foreach ($read as $from) {
                $bytes = fread($from, 8192);
                if ($bytes === '' || $bytes === false) {
                    return;
                }
                fwrite($from === $client ? $server : $client, $bytes);
            }
        }
    }

    public function end(): void
    {
        posix_kill($this->child, SIGKILL);
        pcntl_waitpid($this->child, $status);
    }
}
