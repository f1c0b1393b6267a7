<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

/** What is logged: an error each time, a warning of each kind once a minute. */
final class Notices
{
    /** @var array<string, int> */
    private static array $next = [];

    private function __construct()
    {
    }

    public static function warn(Options $options, string $kind, \Throwable $why): void
    {
        $now = time();
        if ($now < (self::$next[$kind] ?? 0)) {
            return;
        }
        self::$next[$kind] = $now + Limits::WARN_EVERY;
        // Scripts end with their requests, so the folder remembers for all of them.
        $mark = "{$options->state}/" . md5($kind) . '.warned';
        clearstatcache(true, $mark);
        if ($now < (int) @filemtime($mark) + Limits::WARN_EVERY) {
            return;
        }
        $options->hasFolder(false) && @touch($mark);
        self::log($options, 'warning', "$kind: {$why->getMessage()}");
    }

    public static function error(Options $options, string $text): void
    {
        self::log($options, 'error', $text);
    }

    private static function log(Options $options, string $level, string $text): void
    {
        if ($options->log !== null) {
            ($options->log)($level, $text);
            return;
        }
        error_log("sqlcached: $level: $text");
    }
}
