# frozen_string_literal: true

require_relative "../own"

# One computes, and what was computed before an invalidation is refused.
class LeaseTest < OwnTest
  TABLE = "leases"

  def test_of_ten_callers_one_computes
    computed = Queue.new
    arrived = Queue.new
    threads = Array.new(10) do
      Thread.new do
        store.fetch("value", tags: ["t"]) do
          # Nobody is done before all others have asked.
          wait_until("all asked") { arrived.size == 10 }
          computed << true
          "computed"
        end.tap { |value| assert_equal "computed", value }
      end.tap { arrived << true }
    end
    threads.each(&:join)
    assert_equal 1, computed.size
    assert_equal "computed", @cache.read("value")
  end

  def test_of_processes_one_computes
    reader, writer = IO.pipe
    children = Array.new(4) do
      fork do
        value = store.fetch("value") do
          writer.write("c")
          wait_until("a while") { (@looks = @looks.to_i + 1) > 10 }
          "computed"
        end
        exit!(value == "computed" ? 0 : 1)
      end
    end
    children.each { |child| assert_equal 0, Process.wait2(child)[1].exitstatus }
    writer.close
    assert_equal "c", reader.read
  end

  def test_late_fills_are_refused
    removals = [
      -> { @cache.delete_tagged("t") }, -> { @cache.delete("value") }, -> { @cache.clear }, -> { @cache.delete_matched(/val/) },
      -> { @cache.delete_matched("va*") }, -> { @cache.delete_multi(["value"]) }, -> { @cache.delete_tagged("t", soft: true) }
    ]
    removals.each do |removal|
      value = @cache.fetch("value", tags: ["t"]) do
        removal.call
        "old"
      end
      assert_equal "old", value
      assert_nil @cache.read("value")
      assert_equal "new", @cache.fetch("value", tags: ["t"]) { "new" }
      assert_equal "new", @cache.read("value")
      @cache.clear
    end
  end

  def test_late_fills_of_many_are_refused
    values = @cache.fetch_multi("a", "b", tags: ["t"]) do |name|
      @cache.delete_tagged("t") if name == "b"
      name.upcase
    end
    assert_equal({ "a" => "A", "b" => "B" }, values)
    assert_empty @cache.read_multi("a", "b")
    @cache.fetch_multi("a", "b", tags: ["t"], &:upcase)
    assert_equal values, @cache.read_multi("a", "b")
    assert_equal 2, @cache.delete_tagged("t")
  end

  def test_late_fills_by_force_are_refused
    @cache.write("value", "first", tags: ["t"])
    @cache.fetch("value", force: true, tags: ["t"]) do
      @cache.delete_tagged("t")
      "old"
    end
    assert_nil @cache.read("value")
    # Another one writes meanwhile: nobody knows who has seen more.
    @cache.write("value", "first")
    @cache.fetch("value", force: true) do
      @cache.write("value", "other")
      "mine"
    end
    assert_nil @cache.read("value")
    assert_equal "forced", @cache.fetch("value", force: true) { "forced" }
    assert_equal "forced", @cache.read("value")
  end

  def test_a_failure_leaves_a_stale_value_to_the_next
    @cache.write("value", "old", tags: ["t"])
    @cache.delete_tagged("t", soft: true)
    assert_raises(RuntimeError) { @cache.fetch("value") { raise "no database" } }
    assert_equal "new", @cache.fetch("value") { "new" }
  end

  def test_softly_invalidated_values_serve_all_but_one
    @cache.write("value", "old", tags: ["t"])
    assert_equal 1, @cache.delete_tagged("t", soft: true)
    inner = nil
    value = @cache.fetch("value", tags: ["t"]) do
      inner = store.fetch("value", tags: ["t"]) { flunk "two compute" }
      "new"
    end
    assert_equal %w[old new], [inner, value]
    assert_equal "new", @cache.read("value")
    assert_equal 1, @cache.delete_tagged("t")
  end

  # The daemon asks the first reader of a stale value to compute it. `read` and `read_multi` do not compute.
  def test_readers_take_no_claim
    @cache.write("value", "old", tags: ["t"])
    @cache.delete_tagged("t", soft: true)
    assert_nil @cache.read("value")
    assert_empty @cache.read_multi("value", "other")
    refute @cache.exist?("value")
    assert_equal "new", @cache.fetch("value", tags: ["t"]) { "new" }
    assert_equal "new", @cache.read("value")
  end

  def test_a_claim_is_left_to_others_when_the_block_fails
    assert_raises(RuntimeError) { @cache.fetch("value") { raise "no" } }
    assert_equal 0, rows
    assert_throws(:away) { @cache.fetch("value") { throw :away } }
    assert_equal 0, rows
    assert_equal "yes", @cache.fetch("value") { "yes" }
    assert_raises(RuntimeError) { @cache.fetch_multi("a", "b") { raise "no" } }
    assert_equal 1, rows
  end

  def test_another_version_is_computed_by_one
    @cache.write("value", "one", version: 1)
    value = @cache.fetch("value", version: 2, tags: ["t"]) do
      @cache.delete_tagged("t")
      "two"
    end
    assert_equal "two", value
    assert_nil @cache.read("value", version: 2)
    assert_equal "two", @cache.fetch("value", version: 2) { "two" }
    assert_equal "two", @cache.read("value", version: 2)
    assert_nil @cache.read("value", version: 1)
  end

  def test_one_refreshes_before_the_deadline
    @cache.write("value", "old", expires_in: 60)
    passed(55)
    inner = nil
    value = @cache.fetch("value", expires_in: 60, refresh_before: 10) do
      inner = store.fetch("value", refresh_before: 10) { flunk "two compute" }
      "new"
    end
    assert_equal %w[old new], [inner, value]
    assert_equal "new", @cache.read("value")
  end

  def test_who_waited_for_a_claim_reads_the_value
    inside = Queue.new
    go = Queue.new
    first = Thread.new { store.fetch("value") { inside << true and go.pop and "first" } }
    inside.pop
    second = Thread.new { store.fetch("value") { flunk "two compute" } }
    wait_until("the second waits") { second.status == "sleep" }
    go << true
    assert_equal %w[first first], [first.value, second.value]
  end

  def test_nested_fetches
    value = @cache.fetch("outer", tags: ["o"]) do
      @cache.write("other", "written")
      @cache.fetch("inner", tags: ["i"]) { "inner" } + "+outer"
    end
    assert_equal "inner+outer", value
    assert_equal({ "outer" => "inner+outer", "inner" => "inner", "other" => "written" }, @cache.read_multi("outer", "inner", "other"))
  end
end
