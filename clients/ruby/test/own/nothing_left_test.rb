# frozen_string_literal: true

require_relative "../own"

# Tags leave with their rows. Other stores keep a set of keys for each tag, which stays when the keys have left.
class NothingLeftTest < OwnTest
  TABLE = "nothing_left"
  WRITES = 10_000

  def test_nothing_is_left_of_tagged_writes
    WRITES.times.each_slice(500) do |part|
      part.each do |number|
        tags = ["product:#{number}", "shop:#{number % 7}", "all"]
        ttl = number.even? ? 60 : nil
        if number % 10 < 2
          @cache.fetch("k#{number}", expires_in: ttl, tags: tags) { number }
        else
          @cache.write("k#{number}", number, expires_in: ttl, tags: tags)
        end
      end
    end
    assert_equal WRITES, rows
    passed(61)
    assert_equal WRITES / 2, rows
    assert_equal WRITES / 2, @cache.delete_tagged("all")
    assert_equal 0, rows
    assert_equal [], sql("SELECT key FROM memcached WHERE key LIKE ?", "%#{TABLE}%")
  end
end
