<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

/**
 * Where the daemon is, and how to talk to it.
 *
 * | Option | Meaning | Default |
 * |---|---|---|
 * | `location` | `host:port`, or the path of a Unix socket | `127.0.0.1:11211` |
 * | `user`, `password` | the role, if the daemon asks for one | none |
 * | `tls` | `true`, or options of PHP's SSL context | none |
 * | `timeout`, `connect_timeout` | seconds | 5, 1 |
 * | `persistent` | connections outlive the script | on, but on the command line |
 * | `on_failure` | when an invalidation cannot be sent: `suspend`, `raise` or `log` | `suspend` |
 * | `state` | a folder that all processes of this application share; it has what could not be sent | in the temporary folder |
 * | `log` | a function of a level (`warning`, `error`) and a text | `error_log` |
 */
final class Options implements \Stringable
{
    public readonly string $location;
    public readonly ?string $user;
    public readonly string $password;
    /** @var array<string, mixed>|null */
    public readonly ?array $tls;
    public readonly float $timeout;
    public readonly float $connectTimeout;
    public readonly bool $persistent;
    public readonly OnFailure $onFailure;
    public readonly string $state;
    public readonly ?\Closure $log;

    private const NAMES = [
        'location', 'user', 'password', 'tls', 'timeout', 'connect_timeout', 'persistent', 'on_failure', 'state', 'log',
    ];

    /** @param array<string, mixed> $options */
    public function __construct(array $options = [])
    {
        $unknown = array_diff(array_keys($options), self::NAMES);
        if ($unknown !== []) {
            throw new \InvalidArgumentException('unknown options: ' . implode(', ', $unknown));
        }
        $this->location = (string) ($options['location'] ?? '127.0.0.1:11211');
        $this->user = isset($options['user']) ? (string) $options['user'] : null;
        $this->password = (string) ($options['password'] ?? '');
        $tls = $options['tls'] ?? false;
        $this->tls = is_array($tls) ? $tls : ($tls ? [] : null);
        $this->timeout = self::seconds('timeout', $options['timeout'] ?? 5.0);
        $this->connectTimeout = self::seconds('connect_timeout', $options['connect_timeout'] ?? 1.0);
        $this->persistent = (bool) ($options['persistent'] ?? !in_array(PHP_SAPI, ['cli', 'phpdbg'], true));
        $failure = $options['on_failure'] ?? OnFailure::Suspend;
        $this->onFailure = $failure instanceof OnFailure ? $failure : OnFailure::from((string) $failure);
        $this->state = (string) ($options['state'] ?? sys_get_temp_dir() . '/sqlcached-' . self::owner());
        $this->log = isset($options['log']) ? \Closure::fromCallable($options['log']) : null;
    }

    /** @param string|array<string, mixed>|self $options a location, or options */
    public static function of(string|array|self $options): self
    {
        return match (true) {
            $options instanceof self => $options,
            is_string($options) => new self(['location' => $options]),
            default => new self($options),
        };
    }

    public function __toString(): string
    {
        return $this->location;
    }

    /** A path is a Unix socket. */
    public function isUnix(): bool
    {
        return str_starts_with($this->location, '/');
    }

    /**
     * Whether the folder `state` may be used, and is made if it is to be. One that belongs to somebody else is not used: what
     * is in it could be statements of his, or a link to anywhere.
     */
    public function hasFolder(bool $make): bool
    {
        if (!is_dir($this->state) && !($make && (@mkdir($this->state, 0700, true) || is_dir($this->state)))) {
            return false;
        }
        return !function_exists('posix_geteuid') || @fileowner($this->state) === posix_geteuid();
    }

    private static function seconds(string $name, mixed $value): float
    {
        if (!is_numeric($value) || $value <= 0) {
            throw new \InvalidArgumentException("$name is a number of seconds above 0");
        }
        return (float) $value;
    }

    /** Another user's processes have another folder: they may not write into ours. */
    private static function owner(): int
    {
        return function_exists('posix_geteuid') ? posix_geteuid() : (int) getmyuid();
    }
}
