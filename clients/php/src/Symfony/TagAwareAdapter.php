<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Symfony;

use Sqlcached\Cache\Definition;
use Sqlcached\Cache\Item;
use Sqlcached\Cache\Lease;
use Sqlcached\Cache\OnFailure;
use Sqlcached\Cache\Options;
use Sqlcached\Cache\Table;
use Sqlcached\Cache\Values;
use Symfony\Component\Cache\Adapter\AbstractTagAwareAdapter;
use Symfony\Component\Cache\CacheItem;
use Symfony\Component\Cache\Marshaller\DefaultMarshaller;
use Symfony\Component\Cache\Marshaller\MarshallerInterface;
use Symfony\Component\Cache\Marshaller\TagAwareMarshaller;

/**
 * A pool of PSR-6 whose tags are a column: they leave with their row, so that nothing is left behind.
 *
 * `get` with a callback lets one process of all machines compute a value, and refuses one that was computed before an
 * invalidation.
 */
final class TagAwareAdapter extends AbstractTagAwareAdapter
{
    /** What Symfony puts between the namespace and a tag. */
    private const TAG = "\0tags\0";

    private readonly Table $table;
    private readonly MarshallerInterface $marshaller;

    /** The namespace with its separator, as ids and tags begin. */
    private readonly string $begin;

    /**
     * The values that this process computes now, by id.
     *
     * @var array<string, Lease>
     */
    private array $leases = [];

    /**
     * @param string|array<string, mixed>|Options $connection where the daemon is
     * @param array<string, scalar> $options of the table
     */
    public function __construct(
        string|array|Options $connection = [],
        string $namespace = '',
        int $defaultLifetime = 0,
        string $table = 'symfony',
        array $options = [],
        ?MarshallerInterface $marshaller = null,
    ) {
        parent::__construct($namespace, $defaultLifetime);
        $this->begin = $namespace === '' ? '' : "$namespace:";
        $this->table = new Table($connection, new Definition($table, $options));
        $this->marshaller = new TagAwareMarshaller($marshaller ?? new DefaultMarshaller(false));
        // Symfony's own lock is one of this machine. The lease is one of all machines.
        $this->setCallbackWrapper(null);
    }

    public function get(string $key, callable $callback, ?float $beta = null, ?array &$metadata = null): mixed
    {
        $claimed = null;
        $compute = function (CacheItem $item, bool &$save) use ($callback, &$claimed): mixed {
            return $this->computed($this->getId($item->getKey()), $callback, $item, $save, $claimed);
        };
        try {
            return parent::get($key, $compute, $beta, $metadata);
        } finally {
            // It was stored, or is not to be: it is expired, or the callback failed.
            $claimed === null || $this->ended($claimed);
        }
    }

    /** The value of a callback, or of another process that has computed it meanwhile. */
    private function computed(string $id, callable $callback, CacheItem $item, bool &$save, ?string &$claimed): mixed
    {
        if (isset($this->leases[$id])) {
            // The callback asks for its own value.
            return $callback($item, $save);
        }
        $lease = $item->isHit() ? Lease::again($this->table, $id) : Lease::take($this->table, $id, null);
        if ($lease->item !== null && ($value = $this->unmarshalled($id, $lease->item)) !== null) {
            $save = false;
            return $value['value'] ?? null;
        }
        $this->leases[$id] = $lease;
        $claimed = $id;
        return $callback($item, $save);
    }

    private function ended(string $id): void
    {
        $lease = $this->leases[$id] ?? null;
        unset($this->leases[$id]);
        $lease?->giveUp();
    }

    protected function doFetch(array $ids): iterable
    {
        $found = [];
        foreach ($this->table->attempt(fn (): array => $this->table->getMany(array_values($ids)), []) as $id => $item) {
            $value = $this->unmarshalled((string) $id, $item);
            if ($value !== null) {
                $found[$id] = $value;
            }
        }
        return $found;
    }

    /** A value as Symfony stored it; null if it does not load, and then it is removed. */
    private function unmarshalled(string $id, Item $item): mixed
    {
        try {
            $value = $this->marshaller->unmarshall($item->data);
            // A version of the namespace is a text.
            if (is_string($value) || is_array($value) && array_key_exists('value', $value)) {
                return $value;
            }
            throw new \UnexpectedValueException('no value of a pool');
        } catch (\Throwable $why) {
            $this->table->drop($id, $why);
            return null;
        }
    }

    protected function doHave(string $id): bool
    {
        return $this->table->attempt(fn (): bool => $this->table->get($id) !== null, false);
    }

    protected function doSave(array $values, int $lifetime, array $addTagData = [], array $removeTagData = []): array
    {
        $failed = [];
        $rows = [];
        foreach ($this->marshaller->marshall($values, $failed) as $id => $data) {
            $tags = array_map(fn (mixed $tag): string => $this->begin . $tag, array_values((array) ($values[$id]['tags'] ?? [])));
            $rows[$id] = [$data, Values::FOREIGN, $tags];
        }
        $ttl = $lifetime === 0 ? null : $lifetime;
        foreach (array_intersect_key($this->leases, $rows) as $id => $lease) {
            // One that was invalidated meanwhile is not stored, and that is no failure.
            $lease->fill($rows[$id][0], $rows[$id][1], $ttl, $rows[$id][2]);
            unset($rows[$id]);
        }
        return array_merge($failed, $this->table->setMany($rows, $ttl));
    }

    protected function doDelete(array $ids): bool
    {
        return $this->removed(fn (): bool => $this->table->deleteMany(array_map(strval(...), array_values($ids))));
    }

    /** Rows take their tags with them. */
    protected function doDeleteYieldTags(array $ids): iterable
    {
        if (!$this->doDelete($ids)) {
            throw new \RuntimeException('the removal was not sent');
        }
        return [];
    }

    protected function doDeleteTagRelations(array $tagData): bool
    {
        return true;
    }

    protected function doInvalidate(array $tagIds): bool
    {
        $tags = array_map(
            fn (string $id): string => $this->begin . substr($id, (int) strpos($id, self::TAG) + strlen(self::TAG)),
            array_values($tagIds),
        );
        return $this->removed(fn (): bool => $this->table->deleteTags($tags) !== null);
    }

    protected function doClear(string $namespace): bool
    {
        return $this->removed(fn (): bool => $this->table->deletePrefix($namespace) !== null);
    }

    /** @param \Closure(): bool $work */
    private function removed(\Closure $work): bool
    {
        return $this->table->options->onFailure === OnFailure::Raise ? $work() : $this->table->attempt($work, false);
    }
}
