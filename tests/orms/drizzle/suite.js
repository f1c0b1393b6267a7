// Drizzle, unchanged: its migrator, queries, relational queries. See tests/orms/README.md.
"use strict";

const path = require("node:path");
const { Pool } = require("pg");
const orm = require("drizzle-orm");
const { drizzle } = require("drizzle-orm/node-postgres");
const { migrate } = require("drizzle-orm/node-postgres/migrator");
const pg = require("drizzle-orm/pg-core");
const { check, fails, place, run, same, sqlstate } = require("../node/checks.js");

const { and, asc, count, desc, eq, exists, gt, ilike, inArray, isNull, like, lt, max, not, or, relations, sql, sum } = orm;

const state = pg.pgEnum("state", ["draft", "published"]);
const users = pg.pgTable("users", {
  id: pg.serial("id").primaryKey(),
  email: pg.varchar("email", { length: 120 }).notNull().unique(),
  name: pg.text("name"),
  age: pg.integer("age").notNull().default(18),
  created: pg.timestamp("created", { withTimezone: true }).notNull().defaultNow(),
  changed: pg.timestamp("changed").$onUpdate(() => sql`now()`),
}, (t) => [pg.index("users_age").on(t.age.desc()), pg.check("users_age_check", sql`${t.age} >= 0`)]);
const posts = pg.pgTable("posts", {
  id: pg.uuid("id").primaryKey().defaultRandom(),
  author: pg.integer("author").notNull().references(() => users.id, { onDelete: "cascade" }),
  title: pg.text("title").notNull(),
  state: state("state").notNull().default("draft"),
  price: pg.numeric("price", { precision: 10, scale: 2 }),
  score: pg.doublePrecision("score"),
  shown: pg.boolean("shown").notNull().default(true),
  day: pg.date("day"),
  hour: pg.time("hour"),
  at: pg.timestamp("at", { withTimezone: true }),
  lasts: pg.interval("lasts"),
  views: pg.bigint("views", { mode: "bigint" }).default(0n),
  data: pg.jsonb("data"),
  labels: pg.text("labels").array().notNull().default(sql`'{}'::text[]`),
});
const schema = {
  users,
  posts,
  usersRelations: relations(users, ({ many }) => ({ posts: many(posts) })),
  postsRelations: relations(posts, ({ one }) => ({ author: one(users, { fields: [posts.author], references: [users.id] }) })),
};

const pool = new Pool({ ...place, max: 3 });
const db = drizzle(pool, { schema });
const folder = path.join(__dirname, "migrations");

check("connects", async () => same((await db.execute(sql`SELECT 1 AS one`)).rows, [{ one: 1 }]));
check("migrate, with an enum, foreign keys", () => migrate(db, { migrationsFolder: folder }));
check("migrate with nothing left to do", () => migrate(db, { migrationsFolder: folder }));
check("the migrations are in their own schema", async () => {
  same((await db.execute(sql`SELECT count(*)::int AS n FROM drizzle.__drizzle_migrations`)).rows, [{ n: 2 }]);
});
check("insert with returning", async () => {
  const rows = await db.insert(users).values([{ email: "ann", name: "Ann" }, { email: "bob", age: 30 }, { email: "cy", age: 40 }]).returning();
  same(rows.map((row) => [row.email, row.name, row.age]), [["ann", "Ann", 18], ["bob", null, 30], ["cy", null, 40]]);
  same(rows[0].created instanceof Date, true);
});
check("all types", async () => {
  const given = {
    author: 1, title: "first", state: "published", price: "12.50", score: 1.25, shown: false, day: "2024-02-29", hour: "08:30:00",
    at: new Date("2024-02-29T12:30:15.123Z"), lasts: "1 day 02:00:00", views: 9007199254740993n, data: { a: [1, null] }, labels: ["x", "y,z"],
  };
  const [row] = await db.insert(posts).values(given).returning();
  const [found] = await db.select().from(posts).where(eq(posts.id, row.id));
  for (const [name, value] of Object.entries(given)) same([name, found[name]], [name, value]);
});
check("upserts", async () => {
  await db.insert(users).values({ email: "bob", age: 31 }).onConflictDoUpdate({ target: users.email, set: { age: sql`excluded.age`, changed: sql`now()` } });
  await db.insert(users).values({ email: "bob", age: 1 }).onConflictDoNothing();
  same((await db.select({ age: users.age }).from(users).where(eq(users.email, "bob"))), [{ age: 31 }]);
});
check("unique values and a CHECK are errors", async () => {
  same(sqlstate(await fails(db.insert(users).values({ email: "bob" }))), "23505");
  same(sqlstate(await fails(db.insert(users).values({ email: "x", age: -1 }))), "23514");
});
check("conditions", async () => {
  const names = async (where) => (await db.select({ email: users.email }).from(users).where(where).orderBy(asc(users.email))).map((row) => row.email);
  same(await names(and(gt(users.age, 18), lt(users.age, 40))), ["bob"]);
  same(await names(or(eq(users.name, "Ann"), inArray(users.email, ["cy"]))), ["ann", "cy"]);
  same(await names(and(isNull(users.name), not(like(users.email, "c%")))), ["bob"]);
  same(await names(ilike(users.email, "AN%")), ["ann"]);
  same(await names(like(users.email, "AN%")), []);
  same(await names(exists(db.select({ one: sql`1` }).from(posts).where(eq(posts.author, users.id)))), ["ann"]);
});
check("joins, groups, aggregates", async () => {
  const rows = await db.select({ email: users.email, n: count(posts.id), sum: sum(posts.price), at: max(posts.at) })
    .from(users).leftJoin(posts, eq(posts.author, users.id)).groupBy(users.email).having(({ n }) => gt(n, 0));
  same(rows, [{ email: "ann", n: 1, sum: "12.50", at: new Date("2024-02-29T12:30:15.123Z") }]);
});
check("CTEs and subqueries", async () => {
  const old = db.$with("old").as(db.select().from(users).where(gt(users.age, 20)));
  same((await db.with(old).select({ n: count() }).from(old))[0].n, 2);
  const oldest = db.select({ age: max(users.age) }).from(users);
  same(await db.select({ email: users.email }).from(users).where(eq(users.age, oldest)), [{ email: "cy" }]);
});
check("union with brackets", async () => {
  const first = db.select({ email: users.email }).from(users).orderBy(desc(users.age)).limit(1);
  const second = db.select({ email: users.email }).from(users).orderBy(users.age).limit(1);
  same((await pg.unionAll(first, second)).map((row) => row.email), ["cy", "ann"]);
});
check("selectDistinctOn", async () => {
  const rows = await db.selectDistinctOn([users.name], { name: users.name, email: users.email }).from(users).orderBy(users.name, desc(users.age));
  same(rows, [{ name: "Ann", email: "ann" }, { name: null, email: "cy" }]);
});
check("relational queries", async () => {
  const found = await db.query.users.findMany({ with: { posts: { columns: { title: true, shown: true, data: true } } }, orderBy: [asc(users.id)], limit: 2 });
  same(found.map((each) => each.posts), [[{ title: "first", shown: false, data: { a: [1, null] } }], []]);
});
check("relational queries of one", async () => {
  const found = await db.query.posts.findFirst({ with: { author: true }, where: eq(posts.title, "first") });
  same([found.author.email, found.price], ["ann", "12.50"]);
});
check("lateral joins", async () => {
  const last = db.select({ title: posts.title }).from(posts).where(eq(posts.author, users.id)).orderBy(desc(posts.at)).limit(1).as("last");
  const rows = await db.select({ email: users.email, title: last.title }).from(users).innerJoinLateral(last, sql`true`);
  same(rows, [{ email: "ann", title: "first" }]);
});
check("arrays and JSON", async () => {
  same((await db.select({ n: count() }).from(posts).where(orm.arrayContains(posts.labels, ["x"])))[0].n, 1);
  same((await db.select({ n: count() }).from(posts).where(orm.arrayOverlaps(posts.labels, ["x", "q"])))[0].n, 1);
  same(await db.select({ a: sql`${posts.data}->'a'->>0` }).from(posts), [{ a: "1" }]);
});
check("update and delete with returning", async () => {
  const [row] = await db.update(users).set({ age: sql`${users.age} + 1` }).where(eq(users.email, "ann")).returning({ age: users.age, changed: users.changed });
  same([row.age, row.changed instanceof Date], [19, true]);
  same(await db.delete(users).where(eq(users.email, "cy")).returning({ email: users.email }), [{ email: "cy" }]);
});
check("update with FROM", async () => {
  const rows = await db.update(posts).set({ title: users.email }).from(users).where(eq(posts.author, users.id)).returning({ title: posts.title });
  same(rows, [{ title: "ann" }]);
});
check("transactions and savepoints", async () => {
  await fails(db.transaction(async (t) => {
    await t.insert(users).values({ email: "gone" });
    t.rollback();
  }));
  await db.transaction(async (t) => {
    await t.insert(users).values({ email: "kept" });
    await fails(t.transaction((inner) => inner.insert(users).values({ email: "kept" })));
  }, { isolationLevel: "serializable" });
  same(await db.select({ email: users.email }).from(users).where(inArray(users.email, ["gone", "kept"])), [{ email: "kept" }]);
});
check("locks", () => db.transaction(async (t) => {
  same((await t.select().from(users).where(eq(users.email, "kept")).for("update")).length, 1);
  same((await t.select().from(users).where(eq(users.email, "kept")).for("share", { of: users })).length, 1);
}));
check("SKIP LOCKED", () => db.transaction(async (t) => {
  same((await t.select().from(users).where(eq(users.email, "kept")).for("update", { skipLocked: true })).length, 1);
}));
check("prepared queries with placeholders", async () => {
  const query = db.select({ email: users.email }).from(users).where(eq(users.email, sql.placeholder("email"))).prepare("by_email");
  same(await query.execute({ email: "ann" }), [{ email: "ann" }]);
  same(await query.execute({ email: "nobody" }), []);
});
check("$count", async () => same(await db.$count(users, gt(users.age, 18)), 2));
check("a failed migration leaves nothing", async () => {
  await fails(db.transaction(async (t) => {
    await t.execute(sql`CREATE TABLE half (id int PRIMARY KEY)`);
    await t.execute(sql`INSERT INTO half VALUES (1), (1)`);
  }));
  same((await db.execute(sql`SELECT to_regclass('half') AS half`)).rows, [{ half: null }]);
});

run(() => pool.end());
