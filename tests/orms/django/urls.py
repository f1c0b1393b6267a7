from django.contrib import admin
from django.urls import path

from shop.models import Brand

admin.site.register(Brand, search_fields=["name"], list_filter=["country"])
urlpatterns = [path("admin/", admin.site.urls)]
