<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Own;

use PHPUnit\Framework\TestCase;
use Sqlcached\Cache\Client;
use Sqlcached\Cache\Exception\SqlcachedException;
use Sqlcached\Cache\Exception\UnavailableException;
use Sqlcached\Cache\Tests\Place;

/** Servers that are no daemon, and ones that stop within an answer. */
final class StrangeTest extends TestCase
{
    /** @var list<int> */
    private array $children = [];

    protected function tearDown(): void
    {
        foreach ($this->children as $child) {
            posix_kill($child, SIGKILL);
            pcntl_waitpid($child, $status);
        }
    }

    /** A server that says this to the first request of each connection; null: it says nothing and waits. */
    private function server(?string ...$answers): string
    {
        $listener = stream_socket_server('tcp://127.0.0.1:0');
        $place = (string) stream_socket_get_name($listener, false);
        $child = pcntl_fork();
        if ($child === 0) {
            $open = [];
            foreach ($answers as $answer) {
                $stream = stream_socket_accept($listener, -1);
                fread($stream, 8192);
                if ($answer === null) {
                    $open[] = $stream;
                } else {
                    fwrite($stream, $answer);
                    fclose($stream);
                }
            }
            sleep(60);
            posix_kill((int) getmypid(), SIGKILL);
        }
        $this->children[] = $child;
        fclose($listener);
        return $place;
    }

    /** @return iterable<array{0: string}> */
    public function answers(): iterable
    {
        foreach (['', "\r\n", 'OK', "HTTP/1.1 400 Bad Request\r\n\r\n", "{\"n\":1}\r\n", "{\"n\":1\r\nEND\r\n", "+PONG\r\n", "VA 5 f0\r\nhe", "END", "OK x\r\n",
            "OK 99999999999999999999999\r\nEND\r\n", "{]\r\nEND\r\n", str_repeat('x', 100_000) . "\r\n", random_bytes(1_000)] as $answer) {
            yield substr(bin2hex($answer), 0, 40) => [$answer];
        }
    }

    /** @dataProvider answers */
    public function testAnAnswerThatIsNone(string $answer): void
    {
        $client = new Client(Place::options(['location' => $this->server($answer, $answer, $answer)]));
        try {
            $this->assertIsInt($client->sql('DELETE FROM t'), $answer);
        } catch (SqlcachedException $why) {
            $this->assertNotSame('', $why->getMessage());
        }
    }

    public function testAServerThatDoesNotAnswer(): void
    {
        $client = new Client(Place::options(['location' => $this->server(null), 'timeout' => 0.2]));
        $begin = microtime(true);
        try {
            $client->sql('SELECT 1');
            $this->fail('no error');
        } catch (UnavailableException $why) {
            $this->assertStringContainsString('no answer in time', $why->getMessage());
        }
        $this->assertLessThan(30.0, microtime(true) - $begin);
    }

    public function testAServerThatStopsWithinAnAnswerIsAskedAgain(): void
    {
        $client = new Client(Place::options(['location' => $this->server("OK 1\r\n", "OK 2\r\n")]));
        $this->assertSame(1, $client->sql('DELETE FROM t'));
        $this->assertSame(2, $client->sql('DELETE FROM t'));
    }

    public function testOptionsThatAreNone(): void
    {
        foreach ([['timeout' => 0], ['timeout' => 'x'], ['host' => 'x'], ['on_failure' => 'x']] as $options) {
            try {
                new Client($options);
                $this->fail(json_encode($options));
            } catch (\InvalidArgumentException | \ValueError) {
                $this->addToAssertionCount(1);
            }
        }
    }
}
