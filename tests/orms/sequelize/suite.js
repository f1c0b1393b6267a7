// Sequelize 6, unchanged: sync, models, queries, its query interface's migrations. See tests/orms/README.md.
"use strict";

const { DataTypes, Op, QueryTypes, Sequelize, Transaction, col, fn, literal } = require("sequelize");
const { check, fails, place, run, same, sqlstate } = require("../node/checks.js");

const sequelize = new Sequelize({
  dialect: "postgres",
  host: place.host,
  port: place.port,
  username: place.user,
  database: place.database,
  logging: false,
  retry: { max: 0 },
});
const queries = sequelize.getQueryInterface();

const Author = sequelize.define(
  "Author",
  {
    name: { type: DataTypes.STRING(80), allowNull: false, unique: true },
    email: { type: DataTypes.STRING, validate: { isEmail: true } },
    karma: { type: DataTypes.INTEGER, defaultValue: 0 },
  },
  { tableName: "authors", indexes: [{ fields: ["karma"] }, { name: "authors_low", fields: [fn("lower", col("email"))] }] },
);
const Post = sequelize.define(
  "Post",
  {
    id: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4, primaryKey: true },
    title: { type: DataTypes.STRING(200), allowNull: false },
    body: { type: DataTypes.TEXT, comment: "in Markdown" },
    state: { type: DataTypes.ENUM("draft", "published"), defaultValue: "draft" },
    price: DataTypes.DECIMAL(10, 2),
    score: DataTypes.DOUBLE,
    shown: { type: DataTypes.BOOLEAN, defaultValue: true },
    day: DataTypes.DATEONLY,
    hour: DataTypes.TIME,
    at: DataTypes.DATE,
    views: { type: DataTypes.BIGINT, defaultValue: 0 },
    data: DataTypes.JSONB,
    raw: DataTypes.BLOB,
    labels: DataTypes.ARRAY(DataTypes.STRING),
    numbers: DataTypes.ARRAY(DataTypes.INTEGER),
  },
  { tableName: "posts", paranoid: true, version: true },
);
const Tag = sequelize.define("Tag", { name: { type: DataTypes.STRING, primaryKey: true } }, { tableName: "tags", timestamps: false });
Author.hasMany(Post, { foreignKey: { name: "authorId", allowNull: false }, onDelete: "CASCADE" });
Post.belongsTo(Author, { foreignKey: "authorId" });
Post.belongsToMany(Tag, { through: "post_tags", timestamps: false });
Tag.belongsToMany(Post, { through: "post_tags", timestamps: false });

check("connects", () => sequelize.authenticate());
check("the version of the server", async () => {
  if (!/^\d+\.\d+/.test(await sequelize.databaseVersion())) throw new Error("no version");
});
check("sync makes the table of authors", () => Author.sync());
check("sync makes the table of tags", () => Tag.sync());
check("sync makes the table of posts, with an enum, arrays and a foreign key", () => Post.sync());
check("sync of all, once more", () => sequelize.sync());
check("sync with alter changes nothing in tables as they should be", () => Tag.sync({ alter: true }));
check("showAllTables and describeTable", async () => {
  const names = (await queries.showAllTables()).map((each) => each.tableName ?? each);
  for (const name of ["authors", "posts", "tags", "post_tags"]) same(names.includes(name), true);
  const found = await queries.describeTable("authors");
  same([found.name.type, found.name.allowNull, found.id.primaryKey], ["CHARACTER VARYING(80)", false, true]);
});
check("describeTable of an enum and of comments", async () => {
  const found = await queries.describeTable("posts");
  same([found.state.special, found.body.comment], [["draft", "published"], "in Markdown"]);
});
check("showIndex", async () => {
  const found = (await queries.showIndex("authors")).map((each) => [each.name, each.unique, each.primary]);
  const find = (name) => found.find((each) => each[0] === name);
  same(find("authors_pkey"), ["authors_pkey", true, true]);
  same(find("authors_karma"), ["authors_karma", false, false]);
});
check("foreign keys of a table", async () => {
  const found = await queries.getForeignKeyReferencesForTable("posts");
  same(found.map((each) => [each.columnName, each.referencedTableName, each.referencedColumnName]), [["authorId", "authors", "id"]]);
});
check("create and read all types", async () => {
  const author = await Author.create({ name: "ann", email: "ann@example.com" });
  const given = {
    title: "first", body: "text", state: "published", price: "12.50", score: 1.25, shown: false, day: "2024-02-29", hour: "08:30:00",
    at: new Date("2024-02-29T12:30:15.123Z"), views: "9007199254740993", data: { a: [1, null, true], colour: "red", size: { w: 2 } }, raw: Buffer.from([0, 255]),
    labels: ["a", "b,c"], numbers: [1, 2],
  };
  const post = await Post.create({ ...given, authorId: author.id });
  const found = await Post.findByPk(post.id);
  for (const [name, value] of Object.entries(given)) same([name, found[name]], [name, value]);
  same([found.version, found.deletedAt], [0, null]);
});
check("bulkCreate, with updateOnDuplicate and ignoreDuplicates", async () => {
  await Author.bulkCreate([1, 2, 3, 4].map((n) => ({ name: `a${n}`, karma: n })));
  await Author.bulkCreate([{ name: "a1", karma: 100 }, { name: "a5", karma: 5 }], { updateOnDuplicate: ["karma"], conflictAttributes: ["name"] });
  await Author.bulkCreate([{ name: "a1", karma: 7 }], { ignoreDuplicates: true });
  const found = await Author.findAll({ where: { name: { [Op.like]: "a_" } }, order: ["name"], raw: true, attributes: ["name", "karma"] });
  same(found.map((each) => each.karma), [100, 2, 3, 4, 5]);
});
check("findOrCreate", async () => {
  same((await Author.findOrCreate({ where: { name: "once" } }))[1], true);
  same((await Author.findOrCreate({ where: { name: "once" } }))[1], false);
});
check("upsert", async () => {
  const [author] = await Author.upsert({ name: "once", karma: 50 }, { conflictFields: ["name"] });
  same(author.karma, 50);
});
check("unique values are a UniqueConstraintError", async () => {
  const error = await fails(Author.create({ name: "once" }));
  same([error.name, error.errors[0].path, sqlstate(error)], ["SequelizeUniqueConstraintError", "name", "23505"]);
});
check("save, update, increment, and optimistic locking", async () => {
  const post = await Post.findOne({ where: { title: "first" } });
  const other = await Post.findOne({ where: { title: "first" } });
  post.title = "second";
  await post.save();
  other.title = "third";
  same((await fails(other.save())).name, "SequelizeOptimisticLockError");
  await post.increment("views", { by: 2 });
  await Author.increment("karma", { by: 1, where: { name: "a2" } });
  same((await Author.findOne({ where: { name: "a2" } })).karma, 3);
  const [count, rows] = await Author.update({ karma: 9 }, { where: { karma: { [Op.between]: [3, 5] } }, returning: true });
  same([count, rows.every((row) => row.karma === 9)], [4, true]);
});
check("conditions", async () => {
  const names = async (where) => (await Author.findAll({ where, order: ["name"] })).map((each) => each.name);
  same(await names({ name: { [Op.in]: ["a1", "a2"] } }), ["a1", "a2"]);
  same(await names({ [Op.or]: [{ karma: 100 }, { karma: { [Op.lt]: 1 } }] }), ["a1", "ann"]);
  same(await names({ name: { [Op.startsWith]: "a", [Op.notLike]: "%n%" }, karma: { [Op.ne]: 9 } }), ["a1"]);
  same(await names({ name: { [Op.iLike]: "ANN" } }), ["ann"]);
  same(await names({ name: { [Op.like]: "ANN" } }), []);
  same(await names({ name: { [Op.regexp]: "^a[12]$" } }), ["a1", "a2"]);
  same(await names({ email: { [Op.not]: null } }), ["ann"]);
  same(await names({ name: { [Op.any]: ["a3", "a4"] } }), ["a3", "a4"]);
});
check("JSON paths", async () => {
  same(await Post.count({ where: { "data.colour": "red" } }), 1);
  same(await Post.count({ where: { data: { size: { w: { [Op.gt]: 1 } } } } }), 1);
  same(await Post.count({ where: { data: { [Op.contains]: { a: [1] } } } }), 1);
});
check("arrays", async () => {
  same(await Post.count({ where: { labels: { [Op.contains]: ["a"] } } }), 1);
  same(await Post.count({ where: { numbers: { [Op.overlap]: [2, 3] } } }), 1);
});
check("eager loading, also of many to many", async () => {
  const post = await Post.findOne({ where: { title: "second" } });
  await Tag.bulkCreate([{ name: "x" }, { name: "y" }]);
  await post.setTags(["x", "y"]);
  await post.removeTag("y");
  const found = await Author.findAll({
    include: { model: Post, required: true, include: [{ model: Tag, through: { attributes: [] } }] },
    order: [["name", "ASC"], [Post, "title", "DESC"]],
  });
  same(found.map((each) => [each.name, each.Posts[0].Tags.map((tag) => tag.name)]), [["ann", ["x"]]]);
});
check("a limit with included rows", async () => {
  const found = await Author.findAndCountAll({ include: [Post], limit: 2, offset: 1, order: ["name"], distinct: true });
  same([found.count, found.rows.map((each) => each.name)], [7, ["a2", "a3"]]);
});
check("aggregates, groups, HAVING", async () => {
  same([await Author.sum("karma", { where: { name: { [Op.like]: "a_" } } }), await Author.max("karma")], [136, 100]);
  const found = await Author.findAll({
    attributes: ["karma", [fn("COUNT", col("id")), "n"]],
    group: ["karma"], having: literal("COUNT(\"id\") > 1"), raw: true,
  });
  same(found, [{ karma: 9, n: "4" }]);
});
check("soft deletion and restore", async () => {
  const post = await Post.findOne({ where: { title: "second" } });
  await post.destroy();
  same([await Post.count(), await Post.count({ paranoid: false })], [0, 1]);
  await post.restore();
  same(await Post.count(), 1);
});
check("destroy with a limit, truncate", async () => {
  same(await Author.destroy({ where: { karma: 9 }, limit: 1 }), 1);
  same(await Author.destroy({ where: { name: "once" } }), 1);
  await Tag.destroy({ truncate: true, cascade: true });
  same(await Tag.count(), 0);
});
check("raw queries with replacements and with parameters", async () => {
  const rows = await sequelize.query("SELECT name FROM authors WHERE karma > :low ORDER BY 1", { replacements: { low: 50 }, type: QueryTypes.SELECT });
  same(rows, [{ name: "a1" }]);
  const bound = await sequelize.query("SELECT $1::int + 1 AS n", { bind: [4], type: QueryTypes.SELECT });
  same(bound, [{ n: 5 }]);
});
check("transactions, savepoints, isolation, locks", async () => {
  await fails(sequelize.transaction(async (transaction) => {
    await Author.create({ name: "gone" }, { transaction });
    throw new Error("back");
  }));
  same(await Author.count({ where: { name: "gone" } }), 0);
  await sequelize.transaction({ isolationLevel: Transaction.ISOLATION_LEVELS.SERIALIZABLE }, async (transaction) => {
    const author = await Author.findOne({ where: { name: "ann" }, transaction, lock: transaction.LOCK.UPDATE });
    await sequelize.transaction({ transaction }, (inner) => author.update({ karma: 77 }, { transaction: inner }));
  });
  same((await Author.findOne({ where: { name: "ann" } })).karma, 77);
});
check("SKIP LOCKED", () => sequelize.transaction((transaction) => Author.findOne({ transaction, lock: true, skipLocked: true })));
check("migrations add, rename, change and remove columns", async () => {
  await queries.createTable("moves", { id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true }, n: DataTypes.STRING(20) });
  await queries.bulkInsert("moves", [{ n: "1" }, { n: "2" }]);
  await queries.addColumn("moves", "added", { type: DataTypes.INTEGER, allowNull: false, defaultValue: 3 });
  await queries.renameColumn("moves", "n", "name");
  await queries.changeColumn("moves", "name", { type: DataTypes.STRING(60), allowNull: false, defaultValue: "x" });
  await queries.addIndex("moves", ["name"], { unique: true, name: "moves_name" });
  await queries.removeIndex("moves", "moves_name");
  await queries.addConstraint("moves", { fields: ["name"], type: "unique", name: "moves_name_uk" });
  await queries.removeConstraint("moves", "moves_name_uk");
  await queries.removeColumn("moves", "added");
  same(Object.keys(await queries.describeTable("moves")), ["id", "name"]);
});
check("migrations in a transaction that fails leave nothing", async () => {
  await fails(sequelize.transaction(async (transaction) => {
    await queries.createTable("half", { id: { type: DataTypes.INTEGER, primaryKey: true } }, { transaction });
    await queries.bulkInsert("half", [{ id: 1 }, { id: 1 }], { transaction });
  }));
  same(await queries.tableExists("half"), false);
});
check("migrations rename and drop tables, with CASCADE", async () => {
  await queries.renameTable("moves", "moved");
  await queries.dropTable("moved", { cascade: true });
  same(await queries.tableExists("moved"), false);
});
check("sync with alter adds a column", async () => {
  const Wider = sequelize.define("Tag", { name: { type: DataTypes.STRING, primaryKey: true }, size: DataTypes.INTEGER }, { tableName: "tags", timestamps: false });
  await Wider.sync({ alter: true });
  same("size" in (await queries.describeTable("tags")), true);
});
check("sync with force, drop", async () => {
  await sequelize.sync({ force: true });
  same(await Author.count(), 0);
  await sequelize.drop({});
  same(await queries.tableExists("authors"), false);
});

run(() => sequelize.close());
