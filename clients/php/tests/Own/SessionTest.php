<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Tests\Own;

use PHPUnit\Framework\TestCase;
use Sqlcached\Cache\SessionHandler;
use Sqlcached\Cache\Tests\Place;
use function Sqlcached\Cache\Tests\passed;

/** PHP's own sessions, in scripts of their own. */
final class SessionTest extends TestCase
{
    private const BEGIN = '
        require getenv("BOOTSTRAP");
        use Sqlcached\Cache\SessionHandler;
        use Sqlcached\Cache\Tests\Place;
        $sessions = new SessionHandler(Place::options(), static fn () => $_SESSION["user"] ?? null, null, "sessions");
        session_set_save_handler($sessions, true);
        [, $id] = $argv;
        session_id($id);
        ini_set("session.use_cookies", "0");
        ini_set("session.cache_limiter", "");
    ';

    protected function setUp(): void
    {
        $this->handler()->open('', '');
        foreach (['a', 'b', 'user 17', '17'] as $user) {
            $this->handler()->logoutEverywhere($user);
        }
    }

    private function handler(): SessionHandler
    {
        return new SessionHandler(Place::options(), null, null, 'sessions');
    }

    private function script(string $id, string $code): string
    {
        $command = [PHP_BINARY, '-r', self::BEGIN . $code, $id];
        $environment = getenv() + ['BOOTSTRAP' => dirname(__DIR__) . '/autoload.php'];
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => ['redirect', 1]], $pipes, null, $environment);
        $said = (string) stream_get_contents($pipes[1]);
        proc_close($process);
        return $said;
    }

    public function testScriptsShareASession(): void
    {
        $this->assertSame('', $this->script('one', 'session_start(); $_SESSION = ["user" => "a", "cart" => [1, "\0\xff"]];'));
        $this->assertSame('a 1 00ff', $this->script('one', 'session_start();
            echo $_SESSION["user"], " ", $_SESSION["cart"][0], " ", bin2hex($_SESSION["cart"][1]);'));
        $this->assertSame(['one'], array_keys($this->handler()->active('a')));
        $this->assertSame('', $this->script('one', 'session_start(); session_destroy();'));
        $this->assertSame('none', $this->script('one', 'session_start(); echo $_SESSION["user"] ?? "none";'));
    }

    public function testLogoutEverywhere(): void
    {
        foreach (['phone' => '"user 17"', 'laptop' => '"user 17"', 'kept' => '"user 17"', 'other' => '17'] as $id => $user) {
            $this->script($id, "session_start(); \$_SESSION['user'] = $user;");
        }
        $this->assertSame(['kept', 'laptop', 'phone'], array_keys($this->handler()->active('user 17')));
        $this->assertSame(2, $this->handler()->logoutEverywhere('user 17', 'kept'));
        foreach (['phone' => 'out', 'laptop' => 'out', 'kept' => 'user 17', 'other' => '17'] as $id => $expected) {
            $this->assertSame($expected, $this->script($id, 'session_start(); echo $_SESSION["user"] ?? "out";'));
        }
        $this->assertSame(1, $this->handler()->logoutEverywhere(17));
    }

    /** A script that runs when its session is ended once wrote it back, and the user was logged in again. */
    public function testAnEndedSessionDoesNotComeBack(): void
    {
        $this->script('s', 'session_start(); $_SESSION["user"] = "b";');
        $said = $this->script('s', 'session_start(); $sessions->logoutEverywhere("b"); $_SESSION["seen"] = 1;');
        $this->assertSame('', $said);
        $this->assertSame([], $this->handler()->active('b'));
        $this->assertSame('[]', $this->script('s', 'session_start(); echo json_encode($_SESSION);'));
    }

    public function testTwoScriptsOfANewSession(): void
    {
        $this->script('new', 'session_start(); $other = new SessionHandler(Place::options(), null, null, "sessions");
            $other->read(session_id()); $other->write(session_id(), "by|s:5:\"other\";"); $_SESSION["by"] = "this";');
        $this->assertSame('other', $this->script('new', 'session_start(); echo $_SESSION["by"];'));
        $this->script('new', 'session_start(); session_destroy();');
    }

    public function testStrictModeRefusesIdsThatWereNotGiven(): void
    {
        $strict = 'ini_set("session.use_strict_mode", "1"); session_start(); echo session_id() === $id ? "kept" : "another";';
        $this->assertSame('another', $this->script('guessed', $strict));
        $this->script('given', 'session_start(); $_SESSION["user"] = "a";');
        $this->assertSame('kept', $this->script('given', $strict));
        $this->assertSame('another', $this->script('given', 'session_start(); session_regenerate_id(true);
            echo session_id() === $id ? "kept" : "another";'));
        $this->assertCount(1, $this->handler()->active('a'));
    }

    public function testSessionsExpireUnlessTheyAreUsed(): void
    {
        $sessions = new SessionHandler(Place::options(), static fn (): string => 'a', 100, 'sessions');
        foreach (['read', 'idle'] as $id) {
            $sessions->read($id);
            $sessions->write($id, 'x|i:1;');
        }
        passed(60);
        $this->assertTrue($sessions->updateTimestamp('read', 'x|i:1;'));
        passed(60);
        $this->assertSame('', $sessions->read('idle'));
        $this->assertSame('x|i:1;', $sessions->read('read'));
    }

    public function testFlushLeavesSessions(): void
    {
        $sessions = $this->handler();
        $sessions->read('s');
        $sessions->write('s', 'x|i:1;');
        $stream = stream_socket_client('tcp://127.0.0.1:' . Place::port());
        fwrite($stream, "flush_all\r\n");
        fgets($stream);
        $this->assertSame('x|i:1;', $sessions->read('s'));
        $sessions->destroy('s');
        $this->assertSame('', $sessions->read('s'));
    }
}
