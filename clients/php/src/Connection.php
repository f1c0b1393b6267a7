<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

use Sqlcached\Cache\Exception\RefusedException;
use Sqlcached\Cache\Exception\SqlcachedException;
use Sqlcached\Cache\Exception\StatementException;
use Sqlcached\Cache\Exception\UnavailableException;

/**
 * One stream to the daemon's memcached port.
 *
 * A persistent stream outlives the script, also one that died in the middle of an answer. So the stream bears a mark
 * while a request is under way: the size of its chunks, which PHP keeps with the stream. A stream that is found with the
 * mark of a request is not used again.
 */
final class Connection
{
    private const IDLE = Limits::CHUNK;
    private const BUSY = Limits::CHUNK - 1;

    /** It answered before, so that a failure may mean only that the daemon was restarted since. */
    public bool $used = false;

    /** @param resource $stream */
    private function __construct(private $stream, private readonly string $place)
    {
    }

    /**
     * Opens a stream, or takes one that an earlier script left.
     *
     * @param array<string, array<string, mixed>> $context
     * @param ?\Closure(self): void $begin is called for a new stream, before anything else
     */
    public static function open(string $uri, Options $options, bool $persistent, array $context, ?\Closure $begin): self
    {
        $again = true;
        while (true) {
            $stream = self::stream($uri, $options, $persistent, $context);
            $connection = new self($stream, (string) $options);
            $before = stream_set_chunk_size($stream, self::IDLE);
            $connection->setTimeout($options->timeout);
            if ($before === self::IDLE) {
                $connection->used = true;
                return $connection;
            }
            if ($before === self::BUSY) {
                $connection->close();
                continue;
            }
            try {
                $connection->run(static function (self $connection) use ($begin): void {
                    $begin === null || $begin($connection);
                });
            } catch (SqlcachedException $why) {
                $connection->close();
                // A daemon that restarts closes what it has not begun to serve.
                if ($again && $why instanceof UnavailableException && !$why->late) {
                    $again = false;
                    continue;
                }
                throw $why;
            }
            return $connection;
        }
    }

    /**
     * @param array<string, array<string, mixed>> $context
     *
     * @return resource
     */
    private static function stream(string $uri, Options $options, bool $persistent, array $context)
    {
        $flags = STREAM_CLIENT_CONNECT | ($persistent ? STREAM_CLIENT_PERSISTENT : 0);
        $why = '';
        // PHP says the reason in a warning, too.
        set_error_handler(static fn (): bool => true);
        try {
            $stream = stream_socket_client($uri, $number, $why, $options->connectTimeout, $flags, stream_context_create($context));
        } finally {
            restore_error_handler();
        }
        if ($stream === false) {
            throw new UnavailableException("$options: " . ($why === '' ? 'no connection' : $why));
        }
        return $stream;
    }

    private function setTimeout(float $seconds): void
    {
        $whole = (int) $seconds;
        stream_set_timeout($this->stream, $whole, (int) (($seconds - $whole) * 1e6));
    }

    /**
     * Does something with the stream. Whatever ends it but an answer of the daemon leaves the mark of a request.
     *
     * @template T
     *
     * @param \Closure(self): T $work
     *
     * @return T
     */
    public function run(\Closure $work): mixed
    {
        stream_set_chunk_size($this->stream, self::BUSY);
        try {
            $result = $work($this);
        } catch (RefusedException | StatementException $why) {
            stream_set_chunk_size($this->stream, self::IDLE);
            $this->used = true;
            throw $why;
        }
        stream_set_chunk_size($this->stream, self::IDLE);
        $this->used = true;
        return $result;
    }

    /** Whether the daemon has not closed it meanwhile. Between two requests there is nothing to read. */
    public function isAlive(): bool
    {
        $read = [$this->stream];
        $none = [];
        return @stream_select($read, $none, $none, 0) === 0;
    }

    public function close(): void
    {
        if (is_resource($this->stream)) {
            fclose($this->stream);
        }
    }

    public function send(string $request): void
    {
        while ($request !== '') {
            $sent = @fwrite($this->stream, $request);
            if ($sent === false || $sent === 0) {
                throw $this->lost();
            }
            if ($sent === strlen($request)) {
                return;
            }
            $request = substr($request, $sent);
        }
    }

    /** One line without its end. What bounds it is the daemon's largest result, and PHP's limit of memory. */
    public function line(): string
    {
        $line = @fgets($this->stream);
        if ($line === false || !str_ends_with($line, "\n")) {
            throw $this->lost();
        }
        return rtrim($line, "\r\n");
    }

    /** A data block of this size, and its line end. */
    public function block(int $size): string
    {
        if ($size < 0 || $size > Limits::VALUE) {
            throw $this->strange("a value of $size bytes");
        }
        $data = @stream_get_contents($this->stream, $size + 2);
        if ($data === false || strlen($data) !== $size + 2) {
            throw $this->lost();
        }
        if (!str_ends_with($data, "\r\n")) {
            throw $this->strange('a value that is longer than announced');
        }
        return substr($data, 0, -2);
    }

    /** An answer that is not memcached's: the stream is out of step, or this is another server. */
    public function strange(string $what): UnavailableException
    {
        return new UnavailableException("{$this->place}: $what");
    }

    private function lost(): UnavailableException
    {
        $late = stream_get_meta_data($this->stream)['timed_out'];
        return new UnavailableException($this->place . ': ' . ($late ? 'no answer in time' : 'the connection was closed'), $late);
    }

    /** The error of an answer. */
    public static function refused(string $line): SqlcachedException
    {
        if (preg_match('/^ERROR ([0-9A-Z]{5}) (.*)$/', $line, $found) === 1) {
            return new StatementException($found[1], $found[2]);
        }
        if (preg_match('/^(ERROR|CLIENT_ERROR|SERVER_ERROR|NOT_STORED)\b/', $line) === 1) {
            return new RefusedException($line);
        }
        return new UnavailableException('an answer that is not memcached\'s: ' . substr($line, 0, 200));
    }
}
