<?php

declare(strict_types=1);

namespace Shop;

/** The shop's own data, in SQLite. */
final class Database
{
    private readonly \PDO $database;

    /** How many statements this request has sent. */
    public int $statements = 0;

    public function __construct(string $file)
    {
        $this->database = new \PDO("sqlite:$file", null, null, [\PDO::ATTR_DEFAULT_FETCH_MODE => \PDO::FETCH_ASSOC]);
    }

    /** @return list<array<string, mixed>> */
    private function run(string $text, mixed ...$parameters): array
    {
        $this->statements++;
        $statement = $this->database->prepare($text);
        $statement->execute($parameters);
        return $statement->fetchAll();
    }

    /** @return list<array<string, mixed>> */
    public function products(): array
    {
        return $this->run('SELECT id, name, price FROM product ORDER BY id');
    }

    /** @return array<string, mixed>|null */
    public function product(int $id): ?array
    {
        return $this->run('SELECT id, name, price FROM product WHERE id = ?', $id)[0] ?? null;
    }

    /** @return list<array<string, mixed>> */
    public function reviews(int $product): array
    {
        return $this->run('SELECT text FROM review WHERE product = ? ORDER BY id', $product);
    }

    /** The change is committed when this returns: what shows the product may be removed then, and not before. */
    public function change(int $id, string $name, int $price): void
    {
        $this->database->beginTransaction();
        $this->run('UPDATE product SET name = ?, price = ? WHERE id = ?', $name, $price, $id);
        $this->database->commit();
    }

    /** The hash of a user's password. */
    public function password(string $name): ?string
    {
        return $this->run('SELECT password FROM user WHERE name = ?', $name)[0]['password'] ?? null;
    }

    public function fill(string $user, string $password): void
    {
        $this->database->exec('
            DROP TABLE IF EXISTS product; DROP TABLE IF EXISTS review; DROP TABLE IF EXISTS user;
            CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT, price INTEGER);
            CREATE TABLE review (id INTEGER PRIMARY KEY, product INTEGER, text TEXT);
            CREATE TABLE user (name TEXT PRIMARY KEY, password TEXT);
        ');
        foreach (['Lamp' => 40, 'Chair' => 90, 'Table' => 250] as $name => $price) {
            $this->run('INSERT INTO product (name, price) VALUES (?, ?)', $name, $price);
            $this->run('INSERT INTO review (product, text) SELECT max(id), ? FROM product', "A good $name.");
        }
        $this->run('INSERT INTO user VALUES (?, ?)', $user, password_hash($password, PASSWORD_DEFAULT));
    }
}
