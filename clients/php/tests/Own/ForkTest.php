<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Own;

use PHPUnit\Framework\TestCase;
use Sqlcached\Cache\Psr16;
use Sqlcached\Cache\Tests\Place;
use Sqlcached\Cache\Tests\Processes;

/** Processes that were forked do not read one another's answers, and neither do calls within calls. */
final class ForkTest extends TestCase
{
    /** @return iterable<string, array{0: bool}> */
    public function kinds(): iterable
    {
        yield 'connections of the process' => [false];
        yield 'persistent connections' => [true];
    }

    /** @dataProvider kinds */
    public function testProcessesOfOneConnection(bool $persistent): void
    {
        $cache = new Psr16(Place::options(['persistent' => $persistent]), 'forks');
        $cache->set('parent', 'p');
        $work = static function (int $number) use ($cache): string {
            for ($round = 0; $round < 200; $round++) {
                $cache->set("k$number", "$number:$round");
                if ($cache->get("k$number") !== "$number:$round" || $cache->get('parent') !== 'p') {
                    return "process $number read another's value in round $round";
                }
            }
            return 'right';
        };
        $said = Processes::run(4, $work);
        $this->assertSame(array_fill(0, 4, 'right'), $said);
        $this->assertSame('right', $work(9));
    }

    /** @dataProvider kinds */
    public function testASignalHandlerAsksWhileAnAnswerIsRead(bool $persistent): void
    {
        $cache = new Psr16(Place::options(['persistent' => $persistent]), 'forks');
        $cache->set('large', str_repeat('x', 900_000));
        $cache->set('small', 's');
        $handled = 0;
        pcntl_async_signals(true);
        pcntl_signal(SIGALRM, static function () use ($cache, &$handled): void {
            $handled += (int) ($cache->get('small') === 's');
        });
        $parent = getmypid();
        $child = pcntl_fork();
        if ($child === 0) {
            while (posix_kill($parent, SIGALRM)) {
                usleep(500);
            }
            posix_kill((int) getmypid(), SIGKILL);
        }
        try {
            // On a busy machine the child may come late.
            for ($round = 0, $end = microtime(true) + 60; $round < 100 || $handled === 0 && microtime(true) < $end; $round++) {
                $this->assertSame(900_000, strlen((string) $cache->get('large')));
            }
        } finally {
            posix_kill($child, SIGKILL);
            pcntl_waitpid($child, $status);
            pcntl_async_signals(false);
            pcntl_signal(SIGALRM, SIG_DFL);
        }
        $this->assertGreaterThan(0, $handled);
    }
}
