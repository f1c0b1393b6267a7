<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

/**
 * How PHP's values become bytes with memcached's flags, and come back as what they were. Text stays legible in SQL.
 *
 * What does not load again (broken bytes, a class that is not allowed or not there) is no value.
 */
final class Values
{
    /** Flags. 0 with bytes is a value that another client stored. */
    public const BYTES = 0;
    public const SERIALIZED = 1;
    public const INTEGER = 2;
    public const TEXT = 16;
    /** Bytes that a framework's own serializer made. */
    public const FOREIGN = 128;

    /** @param bool|list<class-string> $classes whose objects may be made of what the cache has */
    public function __construct(private readonly bool|array $classes = true)
    {
    }

    /**
     * The bytes of a value, and its flags.
     *
     * @return array{0: string, 1: int}
     */
    public function dump(mixed $value): array
    {
        return match (true) {
            is_int($value) => [(string) $value, self::INTEGER],
            !is_string($value) => [serialize($value), self::SERIALIZED],
            Keys::isText($value) => [$value, self::TEXT],
            default => [$value, self::BYTES],
        };
    }

    /**
     * The value of bytes and flags.
     *
     * @throws \UnexpectedValueException if they do not load
     */
    public function load(string $data, int $flags): mixed
    {
        return match ($flags) {
            self::SERIALIZED => $this->unserialized($data),
            self::INTEGER => is_numeric($data) ? $data + 0 : throw new \UnexpectedValueException('no number'),
            default => $data,
        };
    }

    private function unserialized(string $data): mixed
    {
        set_error_handler(static function (int $level, string $text): never {
            throw new \UnexpectedValueException($text);
        }, E_NOTICE | E_WARNING);
        $callback = ini_set('unserialize_callback_func', self::class . '::missing');
        try {
            // PHP takes nothing for false, without a word.
            $value = $data === '' ? throw new \UnexpectedValueException('no bytes') : unserialize($data, ['allowed_classes' => $this->classes]);
        } catch (\UnexpectedValueException $why) {
            throw $why;
        } catch (\Throwable $why) {
            // A class of the application may refuse what was stored by an older version of it.
            throw new \UnexpectedValueException($why->getMessage(), 0, $why);
        } finally {
            ini_set('unserialize_callback_func', (string) $callback);
            restore_error_handler();
        }
        if ($this->classes !== true && self::isIncomplete($value, strlen($data))) {
            throw new \UnexpectedValueException('an object of a class that is not allowed');
        }
        return $value;
    }

    /** PHP calls this for a class that is not there. */
    public static function missing(string $class): never
    {
        throw new \UnexpectedValueException("the class $class is not there");
    }

    /**
     * Whether there is an object in it whose class was not allowed, or more to look at than its bytes can describe: then
     * an array contains itself.
     */
    private static function isIncomplete(mixed $value, int $size): bool
    {
        $seen = [];
        $left = [$value];
        while ($left !== []) {
            $value = array_pop($left);
            if ($value instanceof \__PHP_Incomplete_Class || $size-- < 0) {
                return true;
            }
            if (is_object($value)) {
                if (isset($seen[spl_object_id($value)])) {
                    continue;
                }
                $seen[spl_object_id($value)] = $value;
                $value = (array) $value;
            }
            if (is_array($value)) {
                foreach ($value as $each) {
                    if (is_array($each) || is_object($each)) {
                        $left[] = $each;
                    }
                }
            }
        }
        return false;
    }
}
