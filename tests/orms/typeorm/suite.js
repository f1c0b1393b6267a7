// TypeORM, unchanged: synchronize, migrations made from the difference, repositories, query builder. See tests/orms/README.md.
"use strict";

require("reflect-metadata");
const { DataSource, EntitySchema, ArrayContains, Between, ILike, In, IsNull, LessThan, Like, MoreThan, Not, Raw, Table, TableColumn, TableIndex, TableUnique, TableCheck, TableForeignKey } = require("typeorm");
const { check, fails, place, run, same, sqlstate } = require("../node/checks.js");

const User = new EntitySchema({
  name: "User",
  tableName: "users",
  columns: {
    id: { type: Number, primary: true, generated: true },
    email: { type: String, length: 120, unique: true },
    name: { type: "text", nullable: true, comment: "as shown" },
    age: { type: "int", default: 18 },
    created: { type: "timestamptz", createDate: true },
    changed: { type: "timestamp", updateDate: true },
    version: { type: "int", version: true },
  },
  relations: { posts: { type: "one-to-many", target: "Post", inverseSide: "author" } },
  indices: [{ name: "users_age", columns: ["age", "name"] }],
  checks: [{ name: "users_age_check", expression: '"age" >= 0' }],
});
const Post = new EntitySchema({
  name: "Post",
  tableName: "posts",
  columns: {
    id: { type: "uuid", primary: true, generated: "uuid" },
    title: { type: "varchar" },
    state: { type: "enum", enum: ["draft", "published"], default: "draft" },
    price: { type: "numeric", precision: 10, scale: 2, nullable: true },
    score: { type: "float8", nullable: true },
    shown: { type: "boolean", default: true },
    day: { type: "date", nullable: true },
    hour: { type: "time", nullable: true },
    at: { type: "timestamptz", nullable: true },
    views: { type: "bigint", default: 0 },
    data: { type: "jsonb", nullable: true },
    raw: { type: "bytea", nullable: true },
    labels: { type: "text", array: true, default: "{}" },
    gone: { type: "timestamptz", deleteDate: true, nullable: true },
  },
  relations: {
    author: { type: "many-to-one", target: "User", inverseSide: "posts", onDelete: "CASCADE", nullable: false },
    tags: { type: "many-to-many", target: "Tag", joinTable: { name: "post_tags" }, cascade: true },
  },
});
const Tag = new EntitySchema({ name: "Tag", tableName: "tags", columns: { name: { type: String, primary: true } } });

/** A migration by hand; its name ends with its time. */
class Shops1700000000001 {
  name = "Shops1700000000001";

  async up(runner) {
    await runner.createTable(
      new Table({
        name: "shops",
        columns: [
          { name: "id", type: "int", isPrimary: true, isGenerated: true, generationStrategy: "increment" },
          { name: "name", type: "varchar", length: "40" },
          { name: "owner", type: "int", isNullable: true },
        ],
        indices: [{ name: "shops_owner", columnNames: ["owner"] }],
      }),
      true,
    );
    await runner.query("INSERT INTO shops (name) VALUES ('before')");
  }

  async down(runner) {
    await runner.dropTable("shops");
  }
}
class Alters1700000000002 {
  name = "Alters1700000000002";

  async up(runner) {
    await runner.addColumn("shops", new TableColumn({ name: "city", type: "varchar", default: "'Ulm'", isNullable: false }));
    await runner.renameColumn("shops", "city", "town");
    await runner.changeColumn("shops", "name", new TableColumn({ name: "name", type: "varchar", length: "40", isNullable: false, default: "'x'" }));
    await runner.createIndex("shops", new TableIndex({ name: "shops_town", columnNames: ["town"], where: "town <> ''" }));
    await runner.createUniqueConstraint("shops", new TableUnique({ name: "shops_name_key", columnNames: ["name"] }));
    await runner.createCheckConstraint("shops", new TableCheck({ name: "shops_check", expression: "name <> ''" }));
    await runner.createForeignKey("shops", new TableForeignKey({ name: "shops_fk", columnNames: ["owner"], referencedTableName: "users", referencedColumnNames: ["id"] }));
  }

  async down(runner) {
    await runner.dropForeignKey("shops", "shops_fk");
    await runner.dropCheckConstraint("shops", "shops_check");
    await runner.dropUniqueConstraint("shops", "shops_name_key");
    await runner.dropIndex("shops", "shops_town");
    await runner.dropColumn("shops", "town");
  }
}

const data = new DataSource({
  type: "postgres",
  host: place.host,
  port: place.port,
  username: place.user,
  database: place.database,
  entities: [User, Post, Tag],
  migrations: [Shops1700000000001, Alters1700000000002],
  // PostgreSQL has this function itself since version 13.
  uuidExtension: "pgcrypto",
});
const users = () => data.getRepository("User");
const posts = () => data.getRepository("Post");

check("connects", () => data.initialize());
check("the difference to an empty database makes all tables", async () => {
  const { upQueries } = await data.driver.createSchemaBuilder().log();
  same(upQueries.filter((each) => each.query.startsWith("CREATE TABLE")).length, 4);
  same(upQueries.filter((each) => each.query.startsWith("DROP")).length, 0);
});
check("synchronize", () => data.synchronize());
check("nothing is left to synchronize", async () => {
  const { upQueries } = await data.driver.createSchemaBuilder().log();
  same(upQueries.map((each) => each.query), []);
});
check("migrations run, which alter too", async () => {
  same((await data.runMigrations({ transaction: "each" })).map((each) => each.name), ["Shops1700000000001", "Alters1700000000002"]);
  same(await data.showMigrations(), false);
});
check("a migration is undone and run again", async () => {
  await data.undoLastMigration();
  same(await data.showMigrations(), true);
  same((await data.runMigrations({ transaction: "all" })).length, 1);
});
check("the query runner describes a table", async () => {
  const runner = data.createQueryRunner();
  const table = await runner.getTable("shops");
  await runner.release();
  const columns = table.columns.map((each) => [each.name, each.type, each.isNullable]).sort();
  same(columns, [["id", "integer", false], ["name", "character varying", false], ["owner", "integer", true], ["town", "character varying", false]]);
  same(table.indices.map((each) => each.name).sort(), ["shops_owner", "shops_town"]);
  same([table.uniques[0].name, table.checks[0].name, table.findColumnByName("id").isGenerated], ["shops_name_key", "shops_check", true]);
});
check("the query runner knows foreign keys", async () => {
  const runner = data.createQueryRunner();
  const table = await runner.getTable("shops");
  await runner.release();
  same(table.foreignKeys.map((each) => [each.name, each.referencedTableName]), [["shops_fk", "users"]]);
});
check("a failed migration leaves nothing", async () => {
  const runner = data.createQueryRunner();
  await runner.startTransaction();
  await runner.query("CREATE TABLE half (id int PRIMARY KEY)");
  await fails(runner.query("INSERT INTO half VALUES (1), (1)"));
  await runner.rollbackTransaction();
  same(await runner.hasTable("half"), false);
  await runner.release();
});
check("save and read users", async () => {
  const user = await users().save({ email: "ann@example.com", name: "Ann" });
  same([user.age, user.version, user.created instanceof Date], [18, 1, true]);
  await users().save([1, 2, 3, 4, 5].map((n) => ({ email: `u${n}@example.com`, age: n * 10 })));
  same(await users().count(), 6);
});
check("save updates, with a version and the time of the change", async () => {
  const user = await users().findOneBy({ email: "ann@example.com" });
  user.name = "Anna";
  await users().save(user);
  same((await users().findOneBy({ id: user.id })).version, 2);
});
check("all types", async () => {
  const author = await users().findOneBy({ email: "ann@example.com" });
  const given = {
    title: "first", state: "published", price: "12.50", score: 1.25, shown: false, day: "2024-02-29", hour: "08:30:00",
    at: new Date("2024-02-29T12:30:15.123Z"), views: "9007199254740993", data: { a: [1, null, true] }, raw: Buffer.from([0, 255]), labels: ["a", "b,c"],
  };
  const { id } = await posts().save({ ...given, author, tags: [{ name: "x" }, { name: "y" }] });
  const found = await posts().findOneBy({ id });
  for (const [name, value] of Object.entries(given)) same([name, found[name]], [name, value]);
});
check("insert, upsert, with orIgnore", async () => {
  await users().insert({ email: "once@example.com" });
  await users().upsert([{ email: "once@example.com", age: 77 }, { email: "new@example.com", age: 1 }], ["email"]);
  await users().createQueryBuilder().insert().values({ email: "new@example.com", age: 5 }).orIgnore().execute();
  same((await users().findBy({ email: In(["once@example.com", "new@example.com"]) })).map((each) => each.age).sort(), [1, 77]);
});
check("unique values are a QueryFailedError", async () => {
  const error = await fails(users().insert({ email: "once@example.com" }));
  same([error.name, sqlstate(error), error.driverError.table], ["QueryFailedError", "23505", "users"]);
});
check("a CHECK is a QueryFailedError", async () => {
  same(sqlstate(await fails(users().insert({ email: "young@example.com", age: -1 }))), "23514");
});
check("conditions", async () => {
  const ages = async (where) => (await users().find({ where, order: { age: "ASC" } })).map((each) => each.age);
  same(await ages({ age: Between(20, 40) }), [20, 30, 40]);
  same(await ages([{ age: LessThan(10) }, { age: MoreThan(50) }]), [1, 77]);
  same(await ages({ name: Not(IsNull()) }), [18]);
  same(await ages({ email: ILike("ANN%") }), [18]);
  same(await ages({ email: Like("ANN%") }), []);
  same(await ages({ age: Raw((name) => `${name} % 20 = 0`) }), [20, 40]);
});
check("relations, join, leftJoinAndSelect", async () => {
  const found = await users().find({ relations: { posts: { tags: true } }, where: { posts: { title: "first" } } });
  same(found.map((each) => [each.name, each.posts[0].tags.map((tag) => tag.name).sort()]), [["Anna", ["x", "y"]]]);
  const built = await users().createQueryBuilder("u").leftJoinAndSelect("u.posts", "p", "p.shown = :shown", { shown: false })
    .where("u.age < :age", { age: 20 }).orderBy("u.age").getMany();
  same(built.map((each) => each.posts.length), [0, 0, 1]);
});
check("pages of joined rows", async () => {
  const [found, count] = await users().findAndCount({ relations: { posts: true }, order: { age: "ASC" }, skip: 1, take: 2 });
  same([found.map((each) => each.age), count], [[10, 18], 8]);
});
check("arrays and JSON", async () => {
  same(await posts().countBy({ labels: ArrayContains(["a"]) }), 1);
  same(await posts().createQueryBuilder("p").where("p.data ->> 'a' = :a", { a: "[1, null, true]" }).getCount(), 1);
  same(await posts().createQueryBuilder("p").where("p.data @> :a", { a: { a: [1] } }).getCount(), 1);
});
check("aggregates", async () => {
  same([await users().sum("age"), await users().maximum("age"), await users().average("age")], [246, 77, 30.75]);
  const raw = await users().createQueryBuilder("u").select("u.age > 18", "adult").addSelect("COUNT(*)", "n").groupBy("u.age > 18")
    .having("COUNT(*) > 1").orderBy("n").getRawMany();
  same(raw, [{ adult: false, n: "3" }, { adult: true, n: "5" }]);
});
check("subqueries and EXISTS", async () => {
  const found = await users().createQueryBuilder("u").where((query) => `EXISTS ${query.subQuery().select("1").from("Post", "p").where('p.authorId = u.id').getQuery()}`).getMany();
  same(found.length, 1);
  same(await users().existsBy({ age: 77 }), true);
});
check("update and delete with RETURNING, increment", async () => {
  const changed = await users().createQueryBuilder().update().set({ name: () => "upper(email)" }).where("age = 77").returning(["id", "name"]).execute();
  same(changed.raw.map((each) => each.name), ["ONCE@EXAMPLE.COM"]);
  await users().increment({ age: 77 }, "age", 3);
  same((await users().delete({ age: 80 })).affected, 1);
});
check("soft deletion and restore", async () => {
  await posts().softDelete({ title: "first" });
  same([await posts().count(), await posts().count({ withDeleted: true })], [0, 1]);
  await posts().restore({ title: "first" });
  same(await posts().count(), 1);
});
check("transactions and savepoints", async () => {
  await fails(data.transaction(async (t) => {
    await t.insert("Tag", { name: "gone" });
    throw new Error("back");
  }));
  await data.transaction("SERIALIZABLE", async (t) => {
    await t.insert("Tag", { name: "kept" });
    await fails(t.transaction((inner) => inner.insert("Tag", { name: "kept" })));
  });
  same((await data.getRepository("Tag").find({ where: { name: In(["gone", "kept"]) } })).map((each) => each.name), ["kept"]);
});
check("locks", () => data.transaction(async (t) => {
  same((await t.findOne("User", { where: { age: 18 }, lock: { mode: "pessimistic_write" } })).name, "Anna");
  same((await t.findOne("User", { where: { age: 18 }, lock: { mode: "pessimistic_read" } })).name, "Anna");
}));
check("SKIP LOCKED", () => data.transaction(async (t) => {
  same((await t.findOne("User", { where: { age: 18 }, lock: { mode: "pessimistic_write", onLocked: "skip_locked" } })).name, "Anna");
}));
check("distinctOn", async () => {
  const found = await users().createQueryBuilder("u").distinctOn(["u.version"]).orderBy("u.version").addOrderBy("u.age", "DESC").getMany();
  same(found.map((each) => each.age), [50, 18]);
});
check("a stream of rows", async () => {
  const stream = await users().createQueryBuilder("u").stream();
  let count = 0;
  for await (const row of stream) count += row.u_id ? 1 : 0;
  same(count, 7);
});
check("deleting a user takes the posts along", async () => {
  await users().delete({ email: "ann@example.com" });
  same(await posts().count(), 0);
});
check("clear, dropDatabase", async () => {
  await data.getRepository("Tag").createQueryBuilder().delete().execute();
  await data.dropDatabase();
  same(await data.query("SELECT count(*) AS n FROM information_schema.tables WHERE table_name IN ('users', 'posts', 'shops')"), [{ n: "0" }]);
});

run(() => data.destroy());
