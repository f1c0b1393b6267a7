"""The pages of the tests."""

from django.contrib import admin
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.cache import cache_page
from django_sqlcached.views import cache_page_by
from shelf.fragments import BookPage

calls = []


@cache_page_by(BookPage, page="pk", vary=("Accept-Language",), tags=lambda request, pk: [f"book:{pk}"])
def book(request, pk):
    calls.append(pk)
    if pk == 404:
        return HttpResponse("none", status=404)
    response = HttpResponse(f"book {pk} in {request.headers.get('Accept-Language')}", headers={"X-Made": len(calls)})
    if pk == 5:
        response.set_cookie("a", "b")
    return response


@cache_page_by(BookPage, page="pk")
async def later(request, pk):
    calls.append(pk)
    return HttpResponse(f"later {pk}")


@cache_page(60)
def plain(request):
    calls.append("plain")
    return HttpResponse("plain")


urlpatterns = [
    path("admin/", admin.site.urls),
    path("book/<int:pk>/", book),
    path("later/<int:pk>/", later),
    path("plain/", plain),
]
