"""Fragments, the template tag, pages, invalidation."""

import uuid
from typing import ClassVar

from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.template import Context, Template, TemplateSyntaxError
from django.test import SimpleTestCase, TestCase, TransactionTestCase
from django.utils.safestring import SafeString
from django_sqlcached.fragments import Fragment, registry
from django_sqlcached.invalidation import invalidate
from django_sqlcached.testing import SqlcachedTestMixin
from django_sqlcached.views import invalidate_url
from shelf.fragments import BookFragment, BookPage, NearFragment, TwoTexts
from shelf.models import Book

import urls


class Base(SimpleTestCase):
    def setUp(self):
        for kind in (BookFragment, NearFragment, TwoTexts, BookPage):
            kind.clear()
        cache.clear()
        urls.calls.clear()


class Fragments(Base):
    def test_rows_and_conditions(self):
        for page in (17, 18):
            for user in (0, 5):
                BookFragment.set(f"<p>{page}{user}", page=page, user=user, part="head:1")
        self.assertEqual(BookFragment.get(page=17, part="head:1"), "<p>170")
        self.assertEqual(BookFragment.get("none", page=17, part="foot"), "none")
        self.assertEqual(BookFragment.delete_where(user=5), 2)
        self.assertEqual(BookFragment.delete_where(page=[18, 19]), 1)
        self.assertEqual([(row["page"], row["user"], row["part"]) for row in BookFragment.rows()], [(17, 0, "head:1")])
        self.assertTrue(BookFragment.delete(page=17, part="head:1"))
        self.assertFalse(BookFragment.delete(page=17, part="head:1"))

    def test_tags_timeouts_and_leases(self):
        BookFragment.set("a", page=1, part="x", tags=["t"])
        BookFragment.set("b", page=2, part="x", tags=["t", "u"], timeout=None)
        BookFragment.set("c", page=3, part="x", timeout=None)
        self.assertEqual([row["page"] for row in BookFragment.rows(tags="u")], [2])
        left = BookFragment.table().sql("SELECT page, _ttl FROM dj_bookfragment ORDER BY page")
        self.assertEqual([row["_ttl"] is None or row["_ttl"] > 600 for row in left], [False, True, True])
        self.assertEqual(BookFragment.delete_where(tags=["t"]), 2)
        self.assertEqual(BookFragment.get_or_set(lambda: "d", page=4, part="x", tags=["v"]), "d")
        self.assertEqual(BookFragment.get_or_set(lambda: "e", page=4, part="x"), "d")
        self.assertEqual(BookFragment.delete_where(tags="v", soft=True), 1)
        self.assertEqual(BookFragment.get_or_set(lambda: "e", page=4, part="x"), "e")

    def test_texts_may_contain_what_separates_keys(self):
        token = uuid.uuid4()
        pairs = [("a", "b:c"), ("a:b", "c"), ("a%3Ab", "c"), ("a b", "c d"), ("", ""), ("a", "x" * 400), ("a", "x" * 401)]
        for number, (lang, path) in enumerate(pairs):
            TwoTexts.set(number, lang=lang, path=path, token=token)
        for number, (lang, path) in enumerate(pairs):
            self.assertEqual(TwoTexts.get(lang=lang, path=path, token=str(token)), number)
        self.assertEqual(TwoTexts.delete_where(lang="a:b"), 1)
        self.assertEqual(TwoTexts.delete_where(token=token), len(pairs) - 1)
        TwoTexts.set("t", lang="a b", path="c:d", token=token, tags=["x"])
        self.assertEqual(TwoTexts.get(lang="a b", path="c:d", token=token), "t")

    def test_mistakes_are_named(self):
        for call, words in (
            (lambda: BookFragment.get(part="x"), "needs page"),
            (lambda: BookFragment.get(page=1, part="x", colour=1), "no field colour"),
            (lambda: BookFragment.get(page="a", part="x"), "page is int, not 'a'"),
            (lambda: BookFragment.get(page=None, part="x"), "page is int, not None"),
            (lambda: BookFragment.delete_where(colour=1), "no field colour"),
            (lambda: BookFragment.invalidate(), "say which rows"),
            (lambda: TwoTexts.get(lang="a", path="b", token="c"), "token is UUID"),
            (BookFragment, "a fragment is a table"),
        ):
            with self.assertRaisesMessage(TypeError, words):
                call()
        # None takes the default: an anonymous user has no key.
        BookFragment.set("a", page=1, user=None, part="x")
        self.assertEqual(BookFragment.get(page=1, user=0, part="x"), "a")

    def test_declarations(self):
        class Abstract(Fragment):
            site: int
            count: ClassVar[int] = 5

            class Meta:
                abstract = True
                ttl = "1 h"

        class Concrete(Abstract):
            name: str

            class Meta:
                prefix = "c:"
                index = ["name"]

        self.assertNotIn("Abstract", registry)
        definition = registry.pop("Concrete").definition()
        self.assertEqual((definition.name, definition.prefix, definition.key), ("dj_concrete", "c:", ("site", "name")))
        self.assertEqual(definition.options, {"ttl": "1 h"})
        for body in ({"__annotations__": {"a": float}}, {"__annotations__": {"tags": str}}, {}):
            with self.assertRaises(ImproperlyConfigured):
                type("Wrong", (Fragment,), body)
        with self.assertRaisesMessage(ImproperlyConfigured, "unknown option tll"):
            type("Wrong", (Fragment,), {"__annotations__": {"a": int}, "Meta": type("Meta", (), {"tll": 1})})
        registry.pop("Wrong", None)


class Tag(Base):
    def rendered(self, text, **context):
        return Template("{% load sqlcached %}" + text).render(Context(context))

    def test_a_block_is_rendered_once(self):
        text = '{% fragment BookFragment part="price" page=book.pk user=user tags=tags %}<b>{{ shown }}</b>{% endfragment %}'
        book = Book(pk=17)
        first = self.rendered(text, book=book, user=None, tags=["t"], shown="<1>")
        self.assertEqual(first, "<b>&lt;1&gt;</b>")
        self.assertEqual(self.rendered(text, book=book, user=None, tags=["t"], shown="<2>"), first)
        self.assertIsInstance(BookFragment.get(page=17, part="price"), SafeString)
        BookFragment.invalidate(tags=["t"])
        self.assertIn("2", self.rendered(text, book=book, user=None, tags="t", shown="2"))

    def test_mistakes_are_named(self):
        for text, words in (
            ("{% fragment %}{% endfragment %}", "there is no fragment"),
            ("{% fragment None page=1 %}{% endfragment %}", "BookFragment"),
            ("{% fragment BookFragment page %}{% endfragment %}", "name=value"),
            ("{% fragment BookFragment colour=1 %}{% endfragment %}", "no field colour"),
        ):
            with self.assertRaisesMessage(TemplateSyntaxError, words):
                self.rendered(text)


class Pages(Base):
    def test_answers_are_kept_by_field_and_header(self):
        for _ in range(2):
            for language in ("de", "en"):
                answer = self.client.get("/book/1/", headers={"accept-language": language})
                self.assertEqual(answer.content.decode(), f"book 1 in {language}")
                self.assertEqual(answer["Vary"], "Accept-Language")
        self.assertEqual((len(urls.calls), answer["X-Made"]), (2, "2"))
        self.assertEqual(self.client.head("/book/1/", headers={"accept-language": "de"}).status_code, 200)
        self.assertEqual(len(urls.calls), 2)
        self.client.post("/book/1/")
        self.assertEqual(len(urls.calls), 3)
        BookPage.invalidate(tags=["book:1"])
        self.client.get("/book/1/", headers={"accept-language": "de"})
        self.assertEqual(len(urls.calls), 4)

    def test_what_is_not_kept(self):
        for page, status in ((404, 404), (5, 200)):
            for _ in range(2):
                self.assertEqual(self.client.get(f"/book/{page}/").status_code, status)
        self.assertEqual((urls.calls, BookPage.rows()), ([404, 404, 5, 5], []))

    async def test_async_views(self):
        for _ in range(2):
            self.assertEqual((await self.async_client.get("/later/3/")).content, b"later 3")
        self.assertEqual(urls.calls, [3])

    def test_pages_of_django_s_own_middleware(self):
        for language in ("de", "en"):
            self.client.get("/plain/", {"a": 1}, headers={"accept-language": language})
        self.client.get("/plain/")
        self.assertEqual(len(urls.calls), 2)
        self.assertGreaterEqual(invalidate_url("http://testserver/plain/?a=1"), 1)
        self.client.get("/plain/")
        self.assertEqual(len(urls.calls), 2)
        self.client.get("/plain/", {"a": 1})
        self.assertEqual(len(urls.calls), 3)
        self.assertEqual(invalidate_url("http://testserver/none/"), 0)


class Invalidation(TransactionTestCase):
    def setUp(self):
        BookFragment.clear()
        cache.clear()

    def fill(self, *pages):
        for page in pages:
            BookFragment.set(str(page), page=page, part="x")

    def pages(self):
        return sorted(row["page"] for row in BookFragment.rows())

    def test_a_transaction_sends_one_statement_after_its_commit(self):
        self.fill(1, 2, 3, 4)
        sent = []
        real = BookFragment.table().server.sql
        BookFragment.table().server.sql = lambda text, *rest, **more: (sent.append(text), real(text, *rest, **more))[1]
        try:
            with transaction.atomic():
                for page in (1, 2, 2):
                    invalidate(BookFragment, page=page)
                invalidate(BookFragment, page=3, part="x")
                self.assertEqual(sent, [])
        finally:
            del BookFragment.table().server.sql
        self.assertEqual((len(sent), self.pages()), (1, [4]))

    def test_what_is_rolled_back_invalidates_nothing(self):
        self.fill(1, 2, 3)
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            invalidate(BookFragment, page=1)
            raise ZeroDivisionError
        with transaction.atomic():
            invalidate(BookFragment, page=2)
            with self.assertRaises(ZeroDivisionError), transaction.atomic():
                invalidate(BookFragment, page=3)
                raise ZeroDivisionError
        self.assertEqual(self.pages(), [1, 3])

    def test_databases_are_separate(self):
        self.fill(1)
        with transaction.atomic():
            invalidate(BookFragment, page=1, using="other")
            self.assertEqual(self.pages(), [])

    def test_models_invalidate(self):
        book = Book.objects.create(title="a", shelf=7)
        self.fill(book.pk, 99)
        cache.set("k", 1, tags=["shelf:7"])
        book.title = "b"
        book.save()
        self.assertEqual((self.pages(), cache.get("k")), ([99], None))
        self.fill(book.pk)
        gone = book.pk
        book.delete()
        self.assertNotIn(gone, self.pages())

    def test_many_conditions(self):
        self.fill(*range(1, 700))
        with transaction.atomic():
            for page in range(1, 650):
                invalidate(BookFragment, page=page)
            for page in range(650, 700):
                invalidate(BookFragment, page=page, user=0)
        self.assertEqual(self.pages(), [])

    databases = {"default", "other"}


class Helpers(SqlcachedTestMixin, TestCase):
    def test_assertions(self):
        with self.assertInvalidates(BookFragment, page=1, part="x"):
            with transaction.atomic():
                invalidate(BookFragment, page=[1, 2])
        with self.assertInvalidates("default", tags=["shelf:3"]):
            Book.objects.create(shelf=3)
        with self.assertInvalidatesNothing():
            pass
        with self.assertRaisesMessage(AssertionError, "dj_bookfragment {'page': 2}"):
            with self.assertInvalidates(BookFragment, page=1):
                invalidate(BookFragment, page=2)
        with self.assertRaises(AssertionError), self.assertInvalidatesNothing():
            invalidate(BookFragment, page=2)
