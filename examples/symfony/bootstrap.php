<?php

/** The parts of the shop, put together: where the cache is, what is cached, who has which session. */

declare(strict_types=1);

use Shop\Database;
use Shop\Editor;
use Shop\Fragments;
use Shop\Pages;
use Shop\Users;
use Sqlcached\Cache\SessionHandler;
use Sqlcached\Cache\Symfony\TagAwareAdapter;
use Symfony\Component\HttpFoundation\Session\Session;
use Symfony\Component\HttpFoundation\Session\Storage\NativeSessionStorage;
use Twig\Environment;
use Twig\Loader\FilesystemLoader;

require_once getenv('AUTOLOAD') ?: __DIR__ . '/vendor/autoload.php';

$cache = getenv('SQLCACHED') ?: '127.0.0.1:11211';
$database = new Database(getenv('SHOP_DATABASE') ?: __DIR__ . '/shop.sqlite3');
$pool = new TagAwareAdapter($cache, table: 'shop_fragments', options: ['max_memory' => '16 MB']);
// Symfony keeps what the application has set in a bag of this name.
$sessions = new SessionHandler($cache, static fn () => $_SESSION['_sf2_attributes']['user'] ?? null, table: 'shop_sessions');
$storage = new NativeSessionStorage(['use_strict_mode' => 1, 'cookie_samesite' => 'lax', 'cookie_httponly' => 1], $sessions);
$twig = new Environment(new FilesystemLoader(__DIR__ . '/templates'), ['strict_variables' => true]);

$fragments = new Fragments($pool, $twig);
$editor = new Editor($database, $fragments);
$pages = new Pages($database, $editor, new Users($database, $sessions), $fragments, new Session($storage), $twig);

return ['database' => $database, 'editor' => $editor, 'pages' => $pages];
