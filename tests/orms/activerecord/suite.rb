# ActiveRecord, unchanged: migrations, models, queries, the schema's dump. See tests/orms/README.md.
# frozen_string_literal: true

require "bigdecimal"
require "stringio"
require "active_record"

$stdout.sync = true
CHECKS = []

def check(name, &body) = CHECKS << [name, body]

def same(found, expected)
  raise "found #{found.inspect}, expected #{expected.inspect}" unless found == expected
end

# The block must raise an error of this class.
def fails(kind)
  yield
rescue kind => error
  error
else
  raise "it did not fail with #{kind}"
end

def sqlstate(error)
  error = error.cause while error && !error.is_a?(PG::Error)
  error&.result&.error_field(PG::Result::PG_DIAG_SQLSTATE)
end

def run
  failed = false
  CHECKS.each do |name, body|
    body.call
    puts "ok - #{name}"
  rescue StandardError, NotImplementedError => error
    failed = true
    puts "not ok - #{name}: #{[error.class, sqlstate(error), error.message.split.join(' ')].compact.join(' ')}"
    warn error.full_message
  end
  exit(failed ? 1 : 0)
end

ActiveRecord::Migration.verbose = false
ActiveRecord::Base.establish_connection(
  adapter: "postgresql", host: ENV["PGHOST"], port: ENV["PGPORT"], username: ENV["PGUSER"], database: ENV["PGDATABASE"], pool: 5
)

class Author < ActiveRecord::Base
  has_many :posts, dependent: :destroy
  has_many :tags, -> { distinct }, through: :posts
  validates :name, uniqueness: true, allow_nil: true
end

class Post < ActiveRecord::Base
  belongs_to :author, counter_cache: true
  has_and_belongs_to_many :tags
  enum state: { draft: 0, published: 1 }
end

class Tag < ActiveRecord::Base
end

def db = ActiveRecord::Base.connection

def migrations = ActiveRecord::MigrationContext.new(File.join(__dir__, "migrate"), ActiveRecord::SchemaMigration)

check("connects") { same(db.select_value("SELECT 1"), 1) }
check("the version of the server") { same(db.database_version >= 12_00_00, true) }
check("migrate to the first version") { migrations.up(1) }
check("rows of the first version") { db.execute("INSERT INTO authors (name, created_at, updated_at) VALUES ('old', now(), now())") }
check("migrate to the second version, which alters") { migrations.up(2) }
check("migrate to the last") { migrations.migrate }
check("migrate with nothing left to do") do
  same(migrations.needs_migration?, false)
  migrations.migrate
  same(migrations.current_version, 3)
end
check("roll back, and migrate again") do
  migrations.rollback(2)
  same(db.column_exists?(:authors, :karma), false)
  migrations.migrate
  same(db.column_exists?(:authors, :karma), true)
end
check("a failed migration leaves nothing") do
  broken = Class.new(ActiveRecord::Migration[6.1]) do
    def up
      create_table(:halves)
      execute("INSERT INTO halves VALUES (1), (1)")
    end
  end
  fails(ActiveRecord::RecordNotUnique) { db.transaction { broken.new.exec_migration(db, :up) } }
  same(db.table_exists?(:halves), false)
end
check("columns and types") do
  found = Post.columns.to_h { |each| [each.name, each.sql_type] }
  same(found.values_at("title", "price", "day", "data", "labels", "shown"), ["character varying(200)", "numeric(10,2)", "date", "jsonb", "character varying", "boolean"])
  same(Post.columns_hash["labels"].array, true)
  same(db.primary_key("posts"), "id")
end
check("indexes") do
  found = db.indexes(:posts).to_h { |each| [each.name, [each.columns, each.unique, each.where]] }
  same(found["index_posts_on_author_id"], [["author_id"], false, nil])
  same(found["posts_shown"][2], "shown")
  same(db.index_exists?(:authors, :name, unique: true), true)
end
check("foreign keys") { same(db.foreign_keys(:posts).map { |each| [each.to_table, each.column, each.on_delete] }, [["authors", "author_id", :cascade]]) }
check("CHECK constraints") { same(db.check_constraints(:authors).map(&:name), ["authors_karma"]) }
check("comments") { same([db.table_comment("authors"), Author.columns_hash["karma"].comment], ["who writes", "of all posts"]) }
check("the dump of the schema") do
  out = StringIO.new
  ActiveRecord::SchemaDumper.dump(ActiveRecord::Base.connection, out)
  ['create_table "authors"', 't.decimal "price", precision: 10, scale: 2', 't.string "labels", default: [], array: true'].each do |line|
    raise "no #{line} in #{out.string}" unless out.string.include?(line)
  end
end
check("create and read all types") do
  author = Author.create!(name: "ann")
  at = Time.utc(2024, 2, 29, 12, 30, 15, 123_456)
  given = {
    title: "first", body: "text", state: "published", price: BigDecimal("12.50"), score: 1.25, shown: false, day: Date.new(2024, 2, 29),
    at: at, data: { "a" => [1, nil, true] }, labels: ["a", "b,c"], raw: "\x00\xff".b, key: "00000000-0000-0000-0000-000000000017", views: 2**53 + 1
  }
  post = author.posts.create!(given)
  found = Post.find(post.id)
  given.each { |name, value| same([name, found[name]], [name, value]) }
  same(author.reload.posts_count, 1)
end
check("insert_all, upsert_all") do
  Author.insert_all((1..20).map { |n| { name: "a#{n}", karma: n, created_at: Time.now, updated_at: Time.now } })
  rows = [{ name: "a1", karma: 100, created_at: Time.now, updated_at: Time.now }]
  same(Author.upsert_all(rows, unique_by: :name, returning: %w[karma]).rows, [[100]])
  same(Author.insert_all([{ name: "a1", karma: 5, created_at: Time.now, updated_at: Time.now }], unique_by: :name).rows, [])
end
check("update, dirty columns, increment, touch") do
  author = Author.find_by!(name: "a2")
  author.update!(karma: 7)
  author.increment!(:karma)
  author.touch
  same([Author.find_by(name: "a2").karma, Author.where(karma: 3..5).update_all("karma = karma + 1")], [8, 3])
end
check("unique values are RecordNotUnique, a CHECK StatementInvalid") do
  fails(ActiveRecord::RecordNotUnique) { Author.new(name: "ann").save!(validate: false) }
  same(sqlstate(fails(ActiveRecord::StatementInvalid) { Author.create!(name: "less", karma: -1) }), "23514")
  fails(ActiveRecord::RecordInvalid) { Author.create!(name: "ann") }
  fails(ActiveRecord::NotNullViolation) { Post.new(author_id: Author.first.id).save!(validate: false) }
end
check("find_or_create_by") do
  same(Author.find_or_create_by!(name: "once").id, Author.find_or_create_by!(name: "once").id)
end
check("conditions") do
  names = ->(found) { found.order(:name).pluck(:name) }
  same(names.(Author.where(name: %w[a1 a2])), %w[a1 a2])
  same(names.(Author.where(karma: 100).or(Author.where(name: "ann"))), %w[a1 ann])
  same(names.(Author.where.not("name LIKE ?", "a%")), %w[old once])
  same(names.(Author.where("name ILIKE ?", "ANN")), %w[ann])
  same(names.(Author.where(Author.arel_table[:name].matches_regexp("^a1[0-2]$"))), %w[a10 a11 a12])
  same(names.(Author.where(karma: 19..)), %w[a1 a19 a20])
  same(names.(Author.where.missing(:posts).where("karma = 20")), %w[a20])
end
check("LIKE knows case, and a backslash") do
  Author.create!(name: "50%_x")
  same(Author.where("name LIKE ?", "ANN").count, 0)
  same(Author.where("name LIKE ?", "#{Author.sanitize_sql_like('50%_')}%").pluck(:name), ["50%_x"])
end
check("JSON and arrays") do
  same(Post.where("data @> ?", { a: [1] }.to_json).count, 1)
  same(Post.where("data -> 'a' ->> 0 = '1'").count, 1)
  same(Post.where("labels @> ARRAY[?]::varchar[]", ["a"]).count, 1)
  same(Post.where("? = ANY(labels)", "b,c").count, 1)
end
check("joins, includes, preload, eager_load") do
  same(Author.joins(:posts).where(posts: { title: "first" }).pluck(:name), ["ann"])
  same(Author.includes(:posts).where(name: %w[ann a1]).order(:name).map { |each| each.posts.size }, [0, 1])
  same(Author.eager_load(:posts).where("posts.id IS NOT NULL").map(&:name), ["ann"])
  same(Author.left_joins(:posts).group(:name).having("count(posts.id) > 0").count, { "ann" => 1 })
end
check("many to many, through") do
  post = Post.find_by!(title: "first")
  post.tags = [Tag.create!(name: "x"), Tag.create!(name: "y")]
  post.tags.delete(Tag.find_by(name: "y"))
  same(Author.find_by(name: "ann").tags.map(&:name), ["x"])
end
check("calculations") do
  some = Author.where("name LIKE 'a_'")
  same([some.count, some.sum(:karma), some.maximum(:karma), some.distinct.count(:karma)], [9, 153, 100, 7])
  same(some.average(:karma), BigDecimal("17"))
  same(Post.sum(:price), BigDecimal("12.50"))
  same(Author.group("karma > 10").count.keys.sort_by(&:to_s), [false, true])
end
check("pluck, pick, ids, exists?, find_each, in_batches") do
  same([Author.where(name: "a1").pick(:karma), Author.exists?(name: "a1"), Author.where(name: "none").exists?], [100, true, false])
  same(Author.find_each(batch_size: 7).count, Author.count)
  same(Author.in_batches(of: 10).map(&:size).sum, Author.count)
end
check("subqueries, DISTINCT ON, lock in a transaction") do
  same(Author.where(id: Post.select(:author_id)).pluck(:name), ["ann"])
  Author.transaction { same(Author.lock.find_by(name: "a1").karma, 100) }
  same(Author.select("DISTINCT ON (karma > 50) name").order(Arel.sql("karma > 50, karma DESC, name")).map(&:name).last, "a1")
end
check("SKIP LOCKED") { Author.transaction { same(Author.lock("FOR UPDATE SKIP LOCKED").find_by(name: "a1").karma, 100) } }
check("a union with brackets") do
  one, two = Author.where(name: "a1").select(:name), Author.where(name: "a2").select(:name)
  same(Author.from("((#{one.to_sql}) UNION ALL (#{two.to_sql})) AS authors").order(:name).map(&:name), %w[a1 a2])
end
check("transactions, savepoints, isolation") do
  Author.transaction { Author.create!(name: "gone") && raise(ActiveRecord::Rollback) }
  Author.transaction(isolation: :serializable) do
    Author.create!(name: "kept")
    Author.transaction(requires_new: true) { Author.create!(name: "inner") && raise(ActiveRecord::Rollback) }
  end
  same(Author.where(name: %w[gone kept inner]).pluck(:name), ["kept"])
end
check("advisory locks") do
  same(db.get_advisory_lock(17), true)
  same(db.release_advisory_lock(17), true)
end
check("explain") { same(Author.where(name: "a1").explain.include?("EXPLAIN"), true) }
check("destroy with what belongs to it") do
  Author.find_by!(name: "ann").destroy!
  same(Post.count, 0)
end
check("schema statements, change_column, change_column_null, change_column_default, rename") do
  db.create_table(:moves) { |table| table.string(:name, limit: 20) }
  db.execute("INSERT INTO moves (name) VALUES ('1'), (NULL)")
  db.change_column(:moves, :name, :text)
  db.change_column_null(:moves, :name, false, "0")
  db.change_column(:moves, :name, :integer, using: "name::integer", default: 5)
  db.add_timestamps(:moves, default: -> { "now()" })
  db.rename_column(:moves, :name, :number)
  db.rename_table(:moves, :moved)
  same(db.select_values("SELECT number FROM moved ORDER BY 1"), [0, 1])
  db.drop_table(:moved, force: :cascade)
end
check("truncate, and numbers from 1 again") do
  db.truncate_tables("tags", "posts", "posts_tags")
  db.execute("TRUNCATE authors RESTART IDENTITY CASCADE")
  same(Author.create!(name: "new").id, 1)
end
check("migrate down to nothing") do
  migrations.down(0)
  same(db.table_exists?(:authors), false)
end

run
