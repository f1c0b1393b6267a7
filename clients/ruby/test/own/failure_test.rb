# frozen_string_literal: true

require_relative "../own"

# The daemon is away, comes back, hangs, or breaks off in an answer.
class FailureTest < OwnTest
  TABLE = "failures"

  def setup
    @notes = []
    @daemon = Daemon.new
    @cache = store(@daemon.location)
    @cache.write("a", 1, tags: ["t"])
    @cache.write("b", 2, tags: ["u"])
  end

  def teardown
    super
    @daemon.remove
  end

  def test_nothing_fails_while_the_daemon_is_away
    @daemon.stop
    assert_nil @cache.read("a")
    assert_empty @cache.read_multi("a", "b")
    refute @cache.exist?("a")
    assert_equal "made", @cache.fetch("a") { "made" }
    assert_equal({ "a" => "A", "b" => "B" }, @cache.fetch_multi("a", "b", &:upcase))
    assert_nil @cache.increment("n")
    assert_equal 1, @notes.count { |level, _| level == :warn }, @notes.inspect
  end

  def test_old_rows_are_not_read_after_a_write_that_failed
    @daemon.stop
    refute @cache.write("a", 9)
    @daemon.start
    wait_until("b is read again") { @cache.read("b") == 2 }
    assert_nil @cache.read("a")
  end

  REMOVALS = {
    "by key" => ->(cache) { cache.delete("a") },
    "by keys" => ->(cache) { cache.delete_multi(%w[a x]) },
    "by a tag" => ->(cache) { cache.delete_tagged("t") },
    "softly" => ->(cache) { cache.delete_tagged("t", soft: true) },
    "by a text" => ->(cache) { cache.delete_matched("a*") },
    "by an expression" => ->(cache) { cache.delete_matched(/\Aa/) }
  }.freeze

  REMOVALS.each do |name, removal|
    define_method("test_a_removal_waits_#{name.tr(" ", "_")}") do
      @daemon.stop("KILL")
      refute removal.call(@cache).then { |result| result.is_a?(Integer) && result.positive? }
      @daemon.start
      # Another process reads what is still there. This one does not, until its removal got through.
      wait_until("b is read again") do
        assert_nil @cache.read("a")
        @cache.read("b") == 2
      end
      assert_nil @cache.read("a")
      assert_nil store(@daemon.location).read("a")
      assert_equal 1, @notes.count { |level, _| level == :error }, @notes.inspect
    end
  end

  def test_clear_and_what_ruby_judges_remove_all
    [->(cache) { cache.clear }, ->(cache) { cache.delete_matched(/(?<=a)b/) }].each do |removal|
      @daemon.stop("KILL")
      assert_nil removal.call(@cache)
      @daemon.start
      wait_until("it is read again") { @cache.write("c", 3) && @cache.read("c") == 3 }
      assert_nil @cache.read("b")
      @cache.write("b", 2)
    end
  end

  def test_the_caller_gets_the_error_with_raise
    cache = store(@daemon.location, on_failure: :raise)
    @daemon.stop
    assert_raises(Sqlcached::UnavailableError) { cache.delete_tagged("t") }
    assert_raises(Sqlcached::UnavailableError) { cache.delete("a") }
    assert_nil cache.read("a")
    refute cache.write("c", 1)
    @daemon.start
    wait_until("b is read again") { cache.read("b") == 2 }
    assert_nil cache.read("a")
  end

  def test_old_rows_are_read_with_log
    cache = store(@daemon.location, on_failure: :log)
    @daemon.stop
    assert_nil cache.delete_tagged("t")
    @daemon.start
    assert_equal 1, cache.read("a")
    assert_equal 1, @notes.count { |level, _| level == :error }
  end

  def test_too_many_removals_remove_all
    @daemon.stop
    # Each attempt fails at once: nobody listens.
    300.times { |number| @cache.delete_tagged("#{number}#{"x" * 2_000}") }
    @daemon.start
    wait_until("it is read again") { @cache.write("c", 3) && @cache.read("c") == 3 }
    assert_nil @cache.read("b")
  end

  def test_a_restart_between_two_calls_is_not_seen
    10.times do |number|
      @daemon.restart(number.even? ? "TERM" : "KILL")
      case number % 5
      when 0 then assert_equal 1, @cache.read("a")
      when 1 then assert @cache.write("c", number)
      when 2 then assert @cache.write("d#{number}", number, unless_exist: true)
      when 3 then assert_kind_of Integer, @cache.increment("n")
      when 4 then assert_equal number, @cache.fetch("e#{number}") { number }
      end
    end
    assert_empty @notes
  end

  def test_a_table_that_somebody_dropped_is_made_again
    sql("DROP TABLE failures")
    assert_equal 0, @cache.delete_tagged("t")
    assert @cache.write("a", 1, tags: ["t"])
    assert_equal 1, @cache.delete_tagged("t")
    sql("DROP TABLE failures")
    @cache.table.close
    assert @cache.write("a", 1, tags: ["t"])
    assert_equal 1, @cache.delete_tagged("t")
  end

  def test_a_table_that_somebody_altered
    sql("ALTER TABLE failures ADD COLUMN note TEXT")
    assert_equal 1, @cache.read("a")
    assert @cache.write("a", 2, tags: ["t"])
    assert_equal 1, @cache.delete_tagged("t")
    sql("DROP TABLE failures")
    sql("CREATE TABLE failures (key TEXT PRIMARY KEY, other TEXT) WITH (prefix = 'failures:', value = 'other')")
    @cache.table.close
    assert_nil @cache.read("a")
    refute @cache.write("a", 1)
    assert_match(/is not of this cache/, @notes.join)
  end

  # What breaks off or makes no sense ends its connection; the next call has another.
  def test_answers_that_break_off
    strange = ["VA 10 f1\r\nabc", "VA x\r\n", "nonsense\r\n", "", "VA 3 f1\r\nabcdef\r\n", "VA 99999999999 f1\r\n", "OK"]
    server = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new do
      strange.each do |answer|
        client = server.accept
        client.readpartial(65_536)
        client.write("{\"options\":\"[\\\"prefix=failures:\\\",\\\"value=body\\\",\\\"tags=tags\\\"]\"}\r\nEND\r\n")
        client.readpartial(65_536)
        client.write(answer)
        client.close
      end
    end
    cache = store("127.0.0.1:#{server.addr[1]}")
    strange.each { |answer| assert_nil cache.read("a"), answer.inspect }
    thread.join
  ensure
    server.close
  end

  def test_a_daemon_that_does_not_answer_costs_its_time
    server = TCPServer.new("127.0.0.1", 0)
    cache = store("127.0.0.1:#{server.addr[1]}", timeout: 0.2)
    assert_nil cache.read("a")
    assert_match(/no answer in time/, @notes.join)
  ensure
    server.close
  end

  def test_a_thread_that_is_interrupted_leaves_no_answer_to_others
    200.times do |number|
      thread = Thread.new { loop { @cache.read_multi("a", "b") } }
      wait_until("it runs") { thread.status }
      Thread.pass
      number.even? ? thread.kill : thread.raise(Interrupt).then { thread.report_on_exception = false }
      begin
        thread.join
      rescue Interrupt
        nil
      end
      assert_equal 1, @cache.read("a")
      assert_equal 2, @cache.read("b")
    end
  end
end
