# frozen_string_literal: true

require_relative "../own"

# Input that is odd, broken or hostile.
class InputTest < OwnTest
  TABLE = "inputs"

  # A class that an older version of the application had.
  class Gone
    attr_accessor :name
  end

  KEYS = ["", " ", "a b", "a\0b", "\e00", "\r\nget x\r\n", "ü" * 100, "日本語/17", "\xff\xfe", "a\xc3", "x" * 2_000, "ü" * 1_000,
          "it's", "%_*?[", "\u{10FFFF}", "{\"a\":1}", "-1", "k" * 242, "k" * 250].freeze

  def test_keys
    KEYS.each_with_index { |key, number| assert @cache.write(key, number), key.inspect }
    KEYS.each_with_index { |key, number| assert_equal number, @cache.read(key), key.inspect }
    assert_equal KEYS.size, rows
    values = KEYS.each_with_index.to_h
    assert_equal values, @cache.read_multi(*KEYS)
    KEYS.each { |key| assert_equal 1, @cache.fetch("f#{key}") { 1 } }
    KEYS.each { |key| assert_equal 1, @cache.fetch("f#{key}") { flunk key.inspect } }
    KEYS.each { |key| assert @cache.delete(key), key.inspect }
    assert_empty @cache.read_multi(*KEYS)
    assert @cache.write_multi(values)
    assert_equal values, @cache.read_multi(*KEYS)
    assert_equal KEYS.size, @cache.delete_multi(KEYS.dup)
  end

  def test_values
    values = [nil, true, false, 0, -1, 1 << 80, 1.5, Float::INFINITY, "", "text", "ü", "\0\xff\r\n", [1, { "a" => :b }], Time.at(0),
              "x" * 900_000, BigDecimal("1.5"), :symbol, 1..3]
    values.each do |value|
      assert @cache.write("value", value)
      value.nil? ? assert_nil(@cache.read("value")) : assert_equal(value, @cache.read("value"))
      assert_equal({ "value" => value }, @cache.read_multi("value"))
    end
    ["", "text", "\0\xff\r\n".b, "ü", "12", " "].each do |text|
      assert @cache.write("raw", text, raw: true)
      assert_equal text, @cache.read("raw")
      assert @cache.write("long" * 100, text, raw: true)
      assert_equal text, @cache.read("long" * 100)
    end
  end

  def test_a_value_that_is_too_large_is_refused
    @cache.write("value", "old")
    refute @cache.write("value", Random.bytes(2_000_000), compress: false)
    refute @cache.write_multi({ "value" => Random.bytes(2_000_000), "small" => 1 }, compress: false)
    assert_nil @cache.read("value")
    assert_equal 1, @cache.read("small")
  end

  def test_tags
    tags = ["it's", "{a,b}", "\"quoted\"", "a b", "a,b", "ü", "\\", "NULL", "\xff", "a\0b", "%", "x" * 3_000]
    tags.each_with_index { |tag, number| assert @cache.write("k#{number}", number, tags: [tag, "all"]) }
    tags.each_with_index do |tag, number|
      assert_equal 1, @cache.delete_tagged(tag), tag.inspect
      refute @cache.exist?("k#{number}")
    end
    assert_equal 0, rows
    record = Struct.new(:cache_key).new("products/17")
    @cache.fetch("page", tags: [record, :shop]) { 1 }
    assert_equal 1, @cache.delete_tagged(record)
    assert_equal 0, @cache.delete_tagged([])
  end

  def test_namespaces_have_their_own_keys_and_tags
    shop = store(namespace: "shop")
    blog = store(namespace: -> { "blog[*]" })
    [shop, blog].each { |cache| cache.write("a", 1, tags: ["t"]) }
    assert_equal 1, shop.delete_tagged("t")
    assert_equal 1, blog.read("a")
    shop.write("a", 1)
    assert_equal 1, blog.delete_matched("a*")
    assert_equal 1, shop.read("a")
    blog.write("a", 1)
    shop.clear
    assert_nil shop.read("a")
    assert_equal 1, blog.read("a")
  end

  def test_times_to_live
    [-1, 0, -10**30].each do |seconds|
      @cache.write("value", 1, expires_in: seconds)
      assert_nil @cache.read("value"), seconds
    end
    [10**30, Float::INFINITY, 1e300, 40.years, 2_592_001, 0.5.hours].each do |seconds|
      assert @cache.write("value", 1, expires_in: seconds)
      assert_equal 1, @cache.read("value"), seconds
      assert @cache.write("v" * 300, 1, expires_in: seconds)
      assert_equal 1, @cache.read("v" * 300), seconds
    end
    assert_raises(FloatDomainError) { @cache.write("value", 1, expires_in: Float::NAN) }
  end

  def test_corrupted_values_are_misses_and_leave
    bodies = ["garbage", "", "\x04\x08", Marshal.dump(1), Marshal.dump(ActiveSupport::Cache::Entry.new("v"))[0..-3]]
    bodies.each do |body|
      @cache.write("value", { "a" => 1 })
      sql("UPDATE inputs SET body = ? WHERE key = ?", { "base64" => [body].pack("m0") }["base64"].unpack1("m").b, "value")
      assert_nil @cache.read("value"), body.inspect
      assert_equal 0, rows
    end
    assert_equal bodies.size, @cache.table.broken
    assert_equal 1, @notes.size, "one warning a minute"
  end

  def test_corrupted_compressed_values
    reads = [-> { @cache.read("value") }, -> { @cache.read_multi("value")["value"] }, -> { @cache.fetch("value") { nil } }]
    reads.each do |read|
      entry = ActiveSupport::Cache::Entry.new("x" * 5_000)
      entry.instance_variable_set(:@value, "no deflated bytes")
      @cache.send(:write_entry, "value", entry)
      assert_nil read.call
      assert_equal 1, @cache.fetch("value") { 1 } || 1
      @cache.clear
    end
    assert_equal reads.size, @cache.table.broken
  end

  def test_classes_that_are_gone
    @cache.write("value", Gone.new)
    body = sql("SELECT body FROM inputs").first["body"].gsub("Gone", "Lost")
    sql("UPDATE inputs SET body = ?", body.b)
    assert_nil @cache.read("value")
    assert_equal 0, rows
    assert_equal "made", @cache.fetch("value") { "made" }
  end

  def test_an_error_of_the_application_is_its_own
    key = Object.new
    def key.cache_key
      raise ArgumentError, "mine"
    end
    assert_equal "mine", assert_raises(ArgumentError) { @cache.read(key) }.message
    assert_equal "mine", assert_raises(ArgumentError) { @cache.fetch("value") { raise ArgumentError, "mine" } }.message
    assert_equal 0, @cache.table.broken
  end

  def test_numbers
    assert_equal 1, @cache.increment("n", 1, expires_in: 60, tags: ["t"])
    assert_equal 11, @cache.increment("n", 10)
    assert_equal(-9, @cache.decrement("n", 20))
    assert_equal(-8, @cache.increment("n"))
    assert_equal((1 << 70) - 8, @cache.increment("n", 1 << 70))
    assert_equal 1, @cache.delete_tagged("t")
    assert_equal(-3, @cache.decrement("m", 3))
    assert_equal 1, @cache.increment("l" * 500)
    assert_equal 2, @cache.increment("l" * 500)
    @cache.write("text", "abc", raw: true)
    assert_nil @cache.increment("text")
    assert_nil @cache.decrement("text")
    assert_equal "abc", @cache.read("text")
    @cache.write("entry", 5)
    assert_nil @cache.increment("entry")
  end

  def test_two_at_once_lose_no_increment
    threads = Array.new(4) do
      Thread.new { 50.times { |number| number.even? ? store.increment("n") : store.decrement("n", 3) } }
    end
    threads.each(&:join)
    assert_equal 4 * (25 - 75), @cache.increment("n", 0)
  end

  def test_options
    { location: "nowhere", on_failure: :ignore, timeout: 0, connect_timeout: "x", tls: { strange: 1 } }.each do |name, value|
      assert_raises(ArgumentError, name.to_s) { name == :location ? store(value) : store(name => value) }
    end
    assert_raises(ArgumentError) { store(table: "no name") }
    assert_raises(ArgumentError) { store(table_options: { "a b" => 1 }) }
  end
end
