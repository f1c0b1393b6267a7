<?php

declare(strict_types=1);

namespace Shop;

use Symfony\Component\HttpFoundation\RedirectResponse;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpFoundation\Session\Session;
use Symfony\Component\Routing\Exception\ExceptionInterface;
use Symfony\Component\Routing\Exception\ResourceNotFoundException;
use Symfony\Component\Routing\Matcher\UrlMatcher;
use Symfony\Component\Routing\RequestContext;
use Symfony\Component\Routing\Route;
use Symfony\Component\Routing\RouteCollection;
use Twig\Environment;

/** The shop's pages. */
final class Pages
{
    public function __construct(
        private readonly Database $database,
        private readonly Editor $editor,
        private readonly Users $users,
        private readonly Fragments $fragments,
        private readonly Session $session,
        private readonly Environment $twig,
    ) {
    }

    private static function routes(): RouteCollection
    {
        $routes = new RouteCollection();
        $add = static function (string $path, string $call, string $method) use ($routes): void {
            $route = new Route($path, ['call' => $call], ['id' => '\d{1,9}'], [], '', [], [$method]);
            $routes->add($call, $route);
        };
        $add('/', 'all', 'GET');
        $add('/product/{id}', 'product', 'GET');
        $add('/product/{id}/basket', 'putIntoBasket', 'POST');
        $add('/product/{id}/edit', 'edit', 'GET');
        $add('/product/{id}', 'change', 'POST');
        $add('/login', 'loginForm', 'GET');
        $add('/login', 'logIn', 'POST');
        $add('/logout', 'logOut', 'POST');
        $add('/logout-elsewhere', 'logOutElsewhere', 'POST');
        return $routes;
    }

    public function answer(Request $request): Response
    {
        try {
            $found = (new UrlMatcher(self::routes(), (new RequestContext())->fromRequest($request)))->match($request->getPathInfo());
            if (!$this->hasSession()) {
                return new Response('Please try again in a moment.', 503, ['Retry-After' => '5']);
            }
            if ($request->isMethod('POST') && !$this->isOurs($request)) {
                return new Response('The form is too old. Please load the page again.', 403);
            }
            return $this->{$found['call']}($request, (int) ($found['id'] ?? 0));
        } catch (ExceptionInterface) {
            return new Response('There is no such page.', 404);
        }
    }

    /**
     * While the cache is away no session starts: an empty one in its place would log everybody out. PHP says so in a
     * warning, too.
     */
    private function hasSession(): bool
    {
        try {
            return @$this->session->start();
        } catch (\RuntimeException) {
            return false;
        }
    }

    /** Forms of other sites do not know the session's token. */
    private function isOurs(Request $request): bool
    {
        return hash_equals($this->token(), (string) $request->request->get('token'));
    }

    private function token(): string
    {
        if (!$this->session->has('token')) {
            $this->session->set('token', bin2hex(random_bytes(16)));
        }
        return $this->session->get('token');
    }

    private function user(): ?string
    {
        return $this->session->get('user');
    }

    /** @param array<string, mixed> $data */
    private function page(string $template, array $data = [], int $status = 200): Response
    {
        $user = $this->user();
        $body = $this->twig->render($template, $data + [
            'user' => $user,
            'token' => $this->token(),
            'basket' => $this->session->get('basket', []),
            'notice' => implode(' ', $this->session->getFlashBag()->get('notice')),
        ]);
        $response = new Response($body, $status, ['Cache-Control' => 'private, no-store']);
        // For whoever looks how the cache does.
        $response->headers->set('X-Made', implode(' ', $this->fragments->made));
        $response->headers->set('X-Statements', (string) $this->database->statements);
        return $response;
    }

    private function redirect(string $path, string $notice): Response
    {
        $this->session->getFlashBag()->add('notice', $notice);
        return new RedirectResponse($path, 303);
    }

    private function all(): Response
    {
        $list = $this->fragments->get('list', 'list.html.twig', function (): array {
            $products = $this->database->products();
            return [array_column($products, 'id'), ['products' => $products]];
        });
        return $this->page('all.html.twig', ['list' => $list]);
    }

    private function product(Request $request, int $id): Response
    {
        $head = $this->fragments->get("product.$id.head", 'head.html.twig', fn (): array => [
            [$id],
            // What is not there is not kept.
            ['product' => $this->database->product($id) ?? throw new ResourceNotFoundException()],
        ]);
        $reviews = $this->fragments->get("product.$id.reviews", 'reviews.html.twig', fn (): array => [[$id], ['reviews' => $this->database->reviews($id)]]);
        return $this->page('product.html.twig', ['id' => $id, 'head' => $head, 'reviews' => $reviews]);
    }

    private function putIntoBasket(Request $request, int $id): Response
    {
        $basket = $this->session->get('basket', []);
        $basket[$id] = ($basket[$id] ?? 0) + 1;
        $this->session->set('basket', $basket);
        return $this->redirect("/product/$id", 'It is in your basket.');
    }

    private function edit(Request $request, int $id): Response
    {
        $product = $this->database->product($id);
        if ($this->user() === null || $product === null) {
            return $this->redirect('/login', 'Only editors may change a product.');
        }
        return $this->page('edit.html.twig', ['product' => $product]);
    }

    private function change(Request $request, int $id): Response
    {
        if ($this->user() === null) {
            return $this->redirect('/login', 'Only editors may change a product.');
        }
        $form = $request->request;
        $this->editor->change($id, trim((string) $form->get('name')), max(0, (int) $form->get('price')));
        return $this->redirect("/product/$id", 'It was changed.');
    }

    private function loginForm(): Response
    {
        return $this->page('login.html.twig');
    }

    private function logIn(Request $request): Response
    {
        [$name, $password] = [(string) $request->request->get('name'), (string) $request->request->get('password')];
        if (!$this->users->isRight($name, $password)) {
            return $this->redirect('/login', 'Name or password is wrong.');
        }
        // Whoever knew the id before does not know the new one.
        $this->session->migrate(true);
        $this->session->set('user', $name);
        return $this->redirect('/', "Hello $name.");
    }

    private function logOut(): Response
    {
        $this->session->invalidate();
        return $this->redirect('/', 'Good-bye.');
    }

    private function logOutElsewhere(): Response
    {
        $user = $this->user();
        $count = $user === null ? 0 : $this->users->logOutElsewhere($user, $this->session->getId());
        return $this->redirect('/', "$count other sessions were ended.");
    }
}
