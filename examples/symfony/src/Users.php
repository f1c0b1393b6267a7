<?php

declare(strict_types=1);

namespace Shop;

use Sqlcached\Cache\SessionHandler;

/** Who may log in, and where users are logged in. */
final class Users
{
    public function __construct(private readonly Database $database, private readonly SessionHandler $sessions)
    {
    }

    public function isRight(string $name, string $password): bool
    {
        $hash = $this->database->password($name);
        return $hash !== null && password_verify($password, $hash);
    }

    /** How many sessions a user has. */
    public function devices(string $name): int
    {
        return count($this->sessions->active($name));
    }

    /** Ends all sessions of a user but this one; how many. */
    public function logOutElsewhere(string $name, string $session): int
    {
        return $this->sessions->logoutEverywhere($name, $session);
    }
}
