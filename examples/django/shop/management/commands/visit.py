"""``manage.py visit ADDRESS...``: requests pages in this process, and counts the queries of the shop's database."""

from django.core.management.base import BaseCommand
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext


class Command(BaseCommand):
    help = "Requests pages, and says how many queries each of them took."

    def add_arguments(self, parser):
        parser.add_argument("addresses", nargs="+")
        parser.add_argument("--show", action="store_true", help="show the text of the pages, too")

    def handle(self, addresses, show, **options):
        client = Client()
        for address in addresses:
            with CaptureQueriesContext(connection) as queries:
                answer = client.get(address)
            self.stdout.write(f"{address} {answer.status_code}, queries: {len(queries)}")
            if show:
                lines = answer.content.decode().splitlines()
                self.stdout.write("\n".join(line for line in lines if line.strip()))
