<?php

declare(strict_types=1);

namespace Sqlcached\Cache\Laravel;

use Sqlcached\Cache\SessionHandler;

/**
 * The driver `sqlcached` for stores in `config/cache.php`, and for sessions in `config/session.php`.
 *
 * ```php
 * 'sqlcached' => ['driver' => 'sqlcached', 'connection' => ['location' => '127.0.0.1:11211']],
 * ```
 */
final class ServiceProvider extends \Illuminate\Support\ServiceProvider
{
    public function register(): void
    {
        // Laravel binds these functions to its managers.
        [$store, $sessions] = [self::store(...), self::sessions(...)];
        $this->app->afterResolving('cache', function (object $manager) use ($store): void {
            $manager->extend('sqlcached', fn (object $app, array $config): Repository => $store($app, $config));
        });
        $this->app->afterResolving('session', function (object $manager) use ($sessions): void {
            $manager->extend('sqlcached', fn (object $app): SessionHandler => $sessions($app));
        });
    }

    /** @param array<string, mixed> $config an entry of `stores` in `config/cache.php` */
    private static function store(object $app, array $config): Repository
    {
        $prefix = (string) ($config['prefix'] ?? $app['config']['cache.prefix'] ?? '');
        $repository = new Repository(new Store(
            $config['connection'] ?? [],
            $prefix,
            $config['table'] ?? 'laravel',
            $config['options'] ?? [],
            $config['classes'] ?? true,
        ));
        if ($app->bound('events')) {
            $repository->setEventDispatcher($app['events']);
        }
        return $repository;
    }

    /** The user of a session is the one who has logged in. */
    private static function sessions(object $app): SessionHandler
    {
        $config = $app['config']['session'];
        return new SessionHandler(
            $config['sqlcached'] ?? [],
            static fn (): string|int|null => $app->bound('auth') ? $app['auth']->id() : null,
            (int) ($config['lifetime'] ?? 120) * 60,
            $config['table'] ?? 'laravel_sessions',
        );
    }
}
