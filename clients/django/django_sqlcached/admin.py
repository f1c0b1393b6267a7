"""A page of the admin site that shows the tables and changes nothing."""

from __future__ import annotations

from typing import Any, Optional

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from .models import CacheTable
from .overview import COLUMNS, overview


@admin.register(CacheTable)
class CacheTableAdmin(admin.ModelAdmin):  # type: ignore[type-arg,unused-ignore]
    """The list of tables is the only page. It needs the permission ``view_cachetable``."""

    def changelist_view(self, request: HttpRequest, extra_context: Optional[dict[str, Any]] = None) -> HttpResponse:
        if not self.has_view_permission(request):
            from django.core.exceptions import PermissionDenied

            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": "Cache tables",
            "opts": self.model._meta,
            "columns": COLUMNS,
            "tables": overview(),
        }
        return TemplateResponse(request, "admin/django_sqlcached/cachetable/overview.html", context)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
