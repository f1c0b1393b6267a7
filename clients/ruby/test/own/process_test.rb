# frozen_string_literal: true

require_relative "../own"

# Processes that fork, as Puma's workers do.
class ProcessTest < OwnTest
  TABLE = "processes"

  def test_children_have_connections_of_their_own
    @cache.write("n", 0, raw: true)
    children = Array.new(4) do |child|
      fork do
        done = Array.new(50) { |number| @cache.write("c#{child}", number) && @cache.read("c#{child}") == number && @cache.increment("n") }
        exit!(done.all? ? 0 : 1)
      end
    end
    50.times { |number| assert @cache.write("p", number) && @cache.read("p") == number }
    children.each { |child| assert_equal 0, Process.wait2(child)[1].exitstatus }
    assert_equal "200", @cache.read("n")
  end

  def test_a_child_of_a_child_while_a_thread_asks
    asked = Thread.new { 200.times { assert_nil @cache.read("missing") } }
    child = fork do
      inner = fork { exit!(@cache.write("inner", 1) ? 0 : 1) }
      exit!(Process.wait2(inner)[1].exitstatus + (@cache.read("inner") == 1 ? 0 : 1))
    end
    assert_equal 0, Process.wait2(child)[1].exitstatus
    asked.join
  end
end
