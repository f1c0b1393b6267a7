<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

/** How the rows of a table are sent: keys, deadlines and tags as memcached's commands have them. */
final class Wire
{
    public function __construct(private readonly Definition $definition)
    {
    }

    /** The key as meta commands send it; null if it is too long for them. */
    public function key(string $key): ?string
    {
        $name = $this->definition->prefix . Keys::text($key);
        return strlen($name) <= Limits::KEY && $key !== '' ? Protocol::key($name) : null;
    }

    /**
     * The command that stores a row; null if it goes by a statement only.
     *
     * @param list<string> $tags
     */
    public function storing(
        string $key,
        string $data,
        int $flags,
        ?int $ttl,
        array $tags,
        string $mode,
        ?string $cas,
        string $more = '',
    ): ?string {
        $name = $this->key($key);
        $list = implode(',', $tags);
        if ($name === null || ($tags !== [] && !self::areWords($tags, $list))) {
            return null;
        }
        // A command that stores has the length between the key and the flags, of which one may belong to the key.
        [$name, $form] = explode(' ', $name, 2) + ['', ''];
        $line = "ms $name " . strlen($data) . ($form === '' ? '' : " $form") . " F$flags T{$this->exptime($ttl)}$more" . ($mode === 'S' ? '' : " M$mode")
            . ($cas === null ? '' : " C$cas") . ($tags === [] ? '' : " L$list");
        return strlen($line) <= Limits::LINE ? "$line\r\n$data\r\n" : null;
    }

    /**
     * Whether tags can stand in a command: text without blanks and commas.
     *
     * @param list<string> $tags
     */
    private static function areWords(array $tags, string $list): bool
    {
        return !in_array('', $tags, true)
            && substr_count($list, ',') === count($tags) - 1
            && preg_match('/^[^\x00-\x20\x7f]*$/uD', $list) === 1;
    }

    /** A time to live as the hidden column `_ttl` takes it. */
    public static function deadline(?int $ttl): ?int
    {
        return $ttl === null ? null : max(0, min($ttl, Limits::TTL));
    }

    /** memcached's number for a time to live. */
    public function exptime(?int $ttl): int
    {
        $never = $this->definition->hasTtl ? Limits::FOREVER : 0;
        return match (true) {
            $ttl === null => $never,
            $ttl <= 0 => -1,
            $ttl <= Limits::MONTH => $ttl,
            // memcached's clock ends in 2038.
            $ttl >= Limits::FOREVER - time() => $never,
            default => $ttl + time(),
        };
    }
}
