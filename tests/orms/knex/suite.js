// knex, unchanged: its schema builder, migrations, query builder. See tests/orms/README.md.
"use strict";

const knex = require("knex");
const { check, fails, place, run, same, sqlstate } = require("../node/checks.js");

/** Migrations without files. */
const MIGRATIONS = {
  "1_first": {
    async up(db) {
      await db.schema.createTable("shops", (table) => {
        table.increments("id");
        table.string("name", 80).notNullable().unique();
        table.timestamps(true, true);
      });
      await db.schema.createTable("items", (table) => {
        table.bigIncrements("id");
        table.integer("shop_id").notNullable().references("id").inTable("shops").onDelete("CASCADE").index();
        table.string("title").notNullable();
        table.text("body").comment("in Markdown");
        table.decimal("price", 10, 2).defaultTo(0);
        table.enu("state", ["new", "old"]).defaultTo("new");
        table.boolean("shown").notNullable().defaultTo(true);
        table.date("day");
        table.timestamp("at");
        table.jsonb("data");
        table.binary("raw");
        table.uuid("key");
        table.specificType("labels", "text[]");
        table.unique(["shop_id", "title"]);
      });
    },
    async down(db) {
      await db.schema.dropTable("items");
      await db.schema.dropTableIfExists("shops");
    },
  },
  "2_alters": {
    async up(db) {
      await db("shops").insert({ name: "before" });
      await db.schema.alterTable("shops", (table) => {
        table.string("city", 40).notNullable().defaultTo("Ulm");
        table.string("name", 120).notNullable().alter();
        table.renameColumn("city", "town");
        table.index(["town", "name"], "shops_town");
      });
    },
    async down(db) {
      await db.schema.alterTable("shops", (table) => {
        table.dropIndex(["town", "name"], "shops_town");
        table.dropColumn("town");
      });
      await db("shops").delete();
    },
  },
};
const db = knex({
  client: "pg",
  connection: place,
  pool: { min: 0, max: 4 },
  migrations: {
    migrationSource: {
      getMigrations: async () => Object.keys(MIGRATIONS),
      getMigrationName: (name) => name,
      getMigration: async (name) => MIGRATIONS[name],
    },
  },
});

check("connects", async () => same((await db.raw("SELECT 1 AS one")).rows, [{ one: 1 }]));
check("migrate up, the first", () => db.migrate.up());
check("migrate latest, which alters", () => db.migrate.latest());
check("migrate list, current version, status", async () => {
  const [done, left] = await db.migrate.list();
  same([done.map((each) => each.name), left.length], [["1_first", "2_alters"], 0]);
  same(await db.migrate.currentVersion(), "2_alters".split("_")[0]);
});
check("migrate rollback, and latest again", async () => {
  await db.migrate.rollback();
  same(await db.schema.hasColumn("shops", "town"), false);
  await db.migrate.rollback(undefined, true);
  same(await db.schema.hasTable("shops"), false);
  await db.migrate.latest();
  same(await db.schema.hasColumn("shops", "town"), true);
});
check("a failed migration leaves nothing", async () => {
  const broken = {
    up: async (db) => {
      await db.schema.createTable("half", (table) => table.increments("id"));
      await db("half").insert([{ id: 1 }, { id: 1 }]);
    },
    down: async () => {},
  };
  const source = {
    getMigrations: async () => [...Object.keys(MIGRATIONS), "3_broken"],
    getMigrationName: (name) => name,
    getMigration: async (name) => MIGRATIONS[name] ?? broken,
  };
  await fails(db.migrate.latest({ migrationSource: source }));
  same(await db.schema.hasTable("half"), false);
});
check("columnInfo", async () => {
  const found = await db("items").columnInfo();
  same(found.title, { type: "character varying", maxLength: 255, nullable: false, defaultValue: null });
  same(found.price.type, "numeric");
});
check("insert with returning", async () => {
  const rows = await db("shops").insert([{ name: "north" }, { name: "south", town: "Bonn" }]).returning(["name", "town"]);
  same(rows, [{ name: "north", town: "Ulm" }, { name: "south", town: "Bonn" }]);
});
check("all types", async () => {
  const [shop] = await db("shops").where({ name: "north" });
  const given = {
    shop_id: shop.id, title: "t", body: "b", price: "12.50", state: "old", shown: false, at: new Date("2024-02-29T12:30:15.123Z"),
    data: { a: [1, null] }, raw: Buffer.from([0, 255]), key: "00000000-0000-0000-0000-000000000017", labels: ["x", "y,z"],
  };
  const [row] = await db("items").insert(given).returning("*");
  for (const [name, value] of Object.entries(given)) same([name, row[name]], [name, value]);
});
check("an enum's CHECK", async () => {
  const [shop] = await db("shops").where({ name: "north" });
  same(sqlstate(await fails(db("items").insert({ shop_id: shop.id, title: "u", state: "none" }))), "23514");
});
check("batchInsert", async () => {
  await db.batchInsert("shops", Array.from({ length: 100 }, (_, n) => ({ name: `s${String(n).padStart(3, "0")}` })), 30);
  same(await db("shops").where("name", "like", "s0%").count("* as n").first(), { n: "100" });
});
check("upserts with onConflict", async () => {
  await db("shops").insert({ name: "north", town: "Kiel" }).onConflict("name").merge();
  await db("shops").insert({ name: "north", town: "Jena" }).onConflict("name").ignore();
  await db("shops").insert({ name: "south", town: "Rom" }).onConflict("name").merge({ town: "Köln" }).where("shops.town", "Bonn");
  same(await db("shops").whereIn("name", ["north", "south"]).orderBy("name").pluck("town"), ["Kiel", "Köln"]);
});
check("conditions", async () => {
  const names = (build) => build(db("shops")).orderBy("name").limit(3).pluck("name");
  same(await names((q) => q.whereBetween("name", ["s001", "s002"])), ["s001", "s002"]);
  same(await names((q) => q.whereILike("name", "NOR%").orWhere((or) => or.where({ name: "south" }).whereNotNull("town"))), ["north", "south"]);
  same(await names((q) => q.whereLike("name", "NOR%")), []);
  same(await names((q) => q.whereNotExists(db("items").whereRaw("items.shop_id = shops.id")).andWhere("name", "<", "s001")), ["before", "s000"]);
  same(await names((q) => q.whereRaw("name ~ ?", ["^s00[12]$"])), ["s001", "s002"]);
});
check("joins, groups, HAVING, aggregates", async () => {
  const rows = await db("shops").leftJoin("items", "items.shop_id", "shops.id").groupBy("shops.name")
    .havingRaw("count(items.id) > 0").select("shops.name").count("items.id as n").sum("items.price as sum").avg("items.price as avg");
  same(rows, [{ name: "north", n: "1", sum: "12.50", avg: "12.5000000000000000" }]);
});
check("subqueries, WITH, windows", async () => {
  const dear = db("items").max("price").as("dear");
  same(await db.select(dear), [{ dear: "12.50" }]);
  const rows = await db.with("few", db("shops").where("name", "<", "s003").select("name")).from("few")
    .select("name").rowNumber("n", (over) => over.orderBy("name", "desc")).orderBy("n").limit(2);
  same(rows, [{ name: "s002", n: "1" }, { name: "s001", n: "2" }]);
});
check("a recursive WITH", async () => {
  const numbers = db.raw("SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?", [4]);
  const rows = await db.withRecursive("n", ["i"], numbers).from("n").sum("i as sum");
  same(rows, [{ sum: "10" }]);
});
check("union with brackets, order and limit of its parts", async () => {
  const part = (name) => db("shops").select("name").where("name", ">", name).orderBy("name").limit(1);
  same(await db.union([part("s001"), part("s005")], true).orderBy("name"), [{ name: "s002" }, { name: "s006" }]);
});
check("distinctOn", async () => {
  const rows = await db("shops").distinctOn("town").select("town", "name").orderBy([{ column: "town" }, { column: "name", order: "desc" }]);
  same(rows.find((row) => row.town === "Ulm"), { town: "Ulm", name: "s099" });
});
check("JSON functions", async () => {
  same(await db("items").jsonExtract("data", "$.a[0]", "first"), [{ first: 1 }]);
  same(await db("items").whereJsonPath("data", "$.a[0]", "=", 1).count("* as n"), [{ n: "1" }]);
  same(await db("items").whereJsonSupersetOf("data", { a: [1] }).count("* as n"), [{ n: "1" }]);
  same(await db("items").jsonSet("data", "$.b", '"new"', "data"), [{ data: { a: [1, null], b: "new" } }]);
});
check("update, increment, delete with returning", async () => {
  same(await db("items").where("title", "t").increment("price", 1.25).returning("price"), [{ price: "13.75" }]);
  same(await db("items").update({ at: db.fn.now(), body: db.raw("upper(body)") }, ["body"]), [{ body: "B" }]);
  same((await db("shops").where("name", "like", "s%").whereNot("name", "south").delete().returning("id")).length, 100);
});
check("update with FROM, delete with USING", async () => {
  await db("items").updateFrom("shops").where("items.shop_id", "=", db.raw("??", ["shops.id"])).where("shops.name", "north").update({ title: "joined" });
  same(await db("items").pluck("title"), ["joined"]);
  same(await db("items").using("shops").where("items.shop_id", db.ref("shops.id")).where("shops.name", "south").delete(), 0);
});
check("transactions and savepoints", async () => {
  await fails(db.transaction(async (t) => {
    await t("shops").insert({ name: "gone" });
    throw new Error("back");
  }));
  await db.transaction(async (t) => {
    await t("shops").insert({ name: "kept" });
    await fails(t.transaction((inner) => inner("shops").insert({ name: "kept" })));
    same(await t("shops").where({ name: "kept" }).count("* as n"), [{ n: "1" }]);
  }, { isolationLevel: "serializable" });
  same(await db("shops").whereIn("name", ["gone", "kept"]).pluck("name"), ["kept"]);
});
check("forUpdate, forShare, skipLocked, noWait", () => db.transaction(async (t) => {
  same((await t("shops").where({ name: "kept" }).forUpdate()).length, 1);
  same((await t("shops").where({ name: "kept" }).forShare().noWait()).length, 1);
  same((await t("shops").where({ name: "kept" }).forUpdate().skipLocked()).length, 1);
}));
check("a stream of rows", async () => {
  let count = 0;
  for await (const row of db("shops").select("name").stream()) count += row.name ? 1 : 0;
  same(count > 2, true);
});
check("views", async () => {
  const view = (rows) => (made) => {
    made.columns(["name"]);
    made.as(rows.select("name"));
  };
  await db.schema.createView("open_shops", view(db("shops").where("town", "Kiel")));
  same(await db("open_shops"), [{ name: "north" }]);
  await db.schema.createViewOrReplace("open_shops", view(db("shops")));
  await db.schema.dropView("open_shops");
});
check("schema builder, set and drop NOT NULL, defaults, keys, names", async () => {
  await db.schema.createTable("moves", (table) => {
    table.integer("a");
    table.integer("b").defaultTo(2);
    table.primary(["a", "b"], { constraintName: "moves_key" });
  });
  await db.schema.alterTable("moves", (table) => {
    table.string("note");
    table.dropPrimary("moves_key");
    table.setNullable("b");
  });
  await db.schema.alterTable("moves", (table) => table.dropNullable("note"));
  await db.schema.renameTable("moves", "moved");
  await db.schema.alterTable("moved", (table) => table.dropColumns("a", "note"));
  same(Object.keys(await db("moved").columnInfo()), ["b"]);
});
check("truncate and drop", async () => {
  await db("items").truncate();
  same(await db("items").count("* as n"), [{ n: "0" }]);
  await db.schema.dropTableIfExists("moved");
  await db.migrate.rollback(undefined, true);
  same(await db.schema.hasTable("items"), false);
});

run(() => db.destroy());
