<?php

declare(strict_types=1);

namespace Shop;

use Symfony\Contracts\Cache\ItemInterface;
use Symfony\Contracts\Cache\TagAwareCacheInterface;
use Twig\Environment;
use Twig\Markup;

/** Pieces of pages, which are made once and kept until something that they show is changed. */
final class Fragments
{
    private const SECONDS = 600;

    /**
     * The fragments that this request had to make.
     *
     * @var list<string>
     */
    public array $made = [];

    public function __construct(private readonly TagAwareCacheInterface $pool, private readonly Environment $twig)
    {
    }

    /**
     * A fragment. Of all requests that miss it at once, one makes it.
     *
     * @param \Closure(): array{0: list<int>, 1: array<string, mixed>} $find the products that it shows, and what its
     *     template needs
     */
    public function get(string $name, string $template, \Closure $find): Markup
    {
        $html = $this->pool->get($name, function (ItemInterface $item) use ($name, $template, $find): string {
            $this->made[] = $name;
            [$products, $data] = $find();
            $item->expiresAfter(self::SECONDS);
            $item->tag(array_map(self::tag(...), $products));
            return $this->twig->render($template, $data);
        });
        // Twig has escaped what is in it.
        return new Markup($html, 'UTF-8');
    }

    /** Removes all fragments that show a product, whatever their names are. */
    public function changed(int $product): void
    {
        $this->pool->invalidateTags([self::tag($product)]);
    }

    private static function tag(int $product): string
    {
        return "product.$product";
    }
}
