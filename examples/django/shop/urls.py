"""The addresses of the shop."""

from django.contrib import admin
from django.urls import path

from . import views

urlpatterns = [
    path("product/<int:pk>/", views.product),
    path("brand/<int:pk>/", views.brand),
    path("best/", views.best),
    path("account/", views.account),
    path("admin/", admin.site.urls),
]
