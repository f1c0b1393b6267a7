from django.db import migrations, models


def count_stock(apps, _schema_editor):
    apps.get_model("shop", "Product").objects.filter(stock=None).update(stock=0)


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]

    operations = [
        migrations.RenameModel(old_name="Item", new_name="Product"),
        migrations.AddField("brand", "country", models.CharField(max_length=2, default="de", db_index=True)),
        migrations.AddField(
            "product",
            "description",
            models.TextField(blank=True, default="", db_comment="shown below the title"),
        ),
        migrations.AlterField("product", "title", models.CharField(max_length=300)),
        migrations.RunPython(count_stock, migrations.RunPython.noop),
        migrations.AlterField("product", "stock", models.BigIntegerField(default=0)),
        migrations.RemoveField("product", "obsolete"),
        migrations.AddIndex("product", models.Index(fields=["brand", "-price"], name="shop_product_price")),
        migrations.AddIndex(
            "product",
            models.Index(fields=["stock"], name="shop_product_sold", condition=models.Q(stock__lt=5)),
        ),
        migrations.AddConstraint(
            "product",
            models.CheckConstraint(condition=models.Q(price__gte=0), name="shop_product_price_not_negative"),
        ),
        migrations.AddConstraint(
            "product",
            models.UniqueConstraint(fields=["brand", "title"], name="shop_product_title"),
        ),
    ]
