<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

/**
 * The removals of a table that could not be sent, in a file that all processes of the application share.
 *
 * A script of PHP ends with its request. The next one, in whatever process, must not read what this one could not
 * remove. So a table is not read while its file is there, and whoever wants to read sends what is in it first.
 */
final class Journal
{
    private readonly string $file;

    /** What could not be written, where the folder cannot be used: this process knows it at least. */
    private string $memory = '';

    private float $tried = 0.0;

    /** @param ?string $all removes all rows, where there are too many removals to keep; null: they may not be removed */
    public function __construct(private readonly Options $options, string $table, private readonly ?string $all)
    {
        $this->file = "{$options->state}/$table-" . md5((string) $options) . '.unsent';
    }

    public function isEmpty(): bool
    {
        if ($this->memory !== '') {
            return false;
        }
        return !$this->hasFile();
    }

    private function hasFile(): bool
    {
        // PHP remembers that a file is there, and not that it is missing.
        clearstatcache(true, $this->file);
        return file_exists($this->file) && $this->options->hasFolder(false);
    }

    /**
     * Keeps a removal.
     *
     * @param list<mixed> $parameters
     *
     * @return bool whether it is kept; not, if there are too many and the rows may not all be removed
     */
    public function add(string $text, array $parameters): bool
    {
        // Two equal removals are not the same one.
        $line = json_encode([$text, $parameters, bin2hex(random_bytes(8))], JSON_THROW_ON_ERROR) . "\n";
        return $this->locked(function () use ($line): bool {
            $have = $this->content();
            if (strlen($have) + strlen($line) <= Limits::PENDING) {
                return $this->write($have . $line);
            }
            return $this->all !== null
                && $this->write(json_encode([$this->all, [], bin2hex(random_bytes(8))], JSON_THROW_ON_ERROR) . "\n");
        });
    }

    /**
     * Sends what is kept, at most once in a second.
     *
     * @param \Closure(string, list<mixed>): mixed $send throws if it cannot
     *
     * @return bool whether nothing is left
     */
    public function send(\Closure $send): bool
    {
        if (!$this->isDue()) {
            return false;
        }
        $have = $this->content();
        foreach (explode("\n", rtrim($have, "\n")) as $line) {
            $removal = json_decode($line, true);
            if (is_array($removal)) {
                $send((string) ($removal[0] ?? ''), array_values((array) ($removal[1] ?? [])));
            } elseif ($this->all !== null) {
                // Somebody has changed the file, or the disk was full.
                $send($this->all, []);
            }
        }
        return $this->locked(function () use ($have): bool {
            $now = $this->content();
            if (!str_starts_with($now, $have)) {
                return false;
            }
            // What was added meanwhile is still to be sent.
            $this->write(substr($now, strlen($have)));
            return $now === $have;
        });
    }

    private function isDue(): bool
    {
        $now = microtime(true);
        if ($now < $this->tried + Limits::RETRY) {
            return false;
        }
        $this->tried = $now;
        $mark = "{$this->file}.tried";
        clearstatcache(true, $mark);
        // Each process of a machine may ask for all of them.
        if ($now < (int) @filemtime($mark) + Limits::RETRY) {
            return false;
        }
        @touch($mark);
        return true;
    }

    private function content(): string
    {
        return $this->memory . ($this->hasFile() ? (string) @file_get_contents($this->file) : '');
    }

    /** Puts a whole content in the place of the old one. */
    private function write(string $content): bool
    {
        $this->memory = '';
        if ($content === '') {
            @unlink($this->file);
            @unlink("{$this->file}.tried");
            return true;
        }
        $new = $this->file . '.' . getmypid();
        if (!$this->options->hasFolder(true) || @file_put_contents($new, $content) !== strlen($content) || !@rename($new, $this->file)) {
            @unlink($new);
            $this->memory = $content;
        }
        return true;
    }

    /** One process at a time. Where there is no lock, because the folder cannot be used, there is only this process. */
    private function locked(\Closure $work): bool
    {
        $lock = $this->options->hasFolder(true) ? @fopen("{$this->file}.lock", 'c') : false;
        if ($lock === false) {
            return $work();
        }
        flock($lock, LOCK_EX);
        try {
            return $work();
        } finally {
            fclose($lock);
        }
    }
}
