<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests;

/** Work in forked processes. */
final class Processes
{
    /**
     * Does something in so many processes at once; what each returned.
     *
     * @param \Closure(int): string $work is given the process's number
     *
     * @return list<string>
     */
    public static function run(int $count, \Closure $work): array
    {
        $ends = [];
        for ($number = 0; $number < $count; $number++) {
            [$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
            if (pcntl_fork() === 0) {
                try {
                    $said = $work($number);
                } catch (\Throwable $why) {
                    $said = (string) $why;
                }
                fwrite($theirs, $said);
                // Nothing of PHPUnit may run at the end of this process.
                posix_kill((int) getmypid(), SIGKILL);
            }
            fclose($theirs);
            $ends[] = $ours;
        }
        $said = array_map(static fn ($end): string => (string) stream_get_contents($end), $ends);
        while (pcntl_wait($status, WNOHANG) > 0) {
        }
        return $said;
    }
}
