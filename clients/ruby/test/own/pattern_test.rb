# frozen_string_literal: true

require_relative "../own"

# `delete_matched` means what Ruby means, whoever judges.
class PatternTest < OwnTest
  TABLE = "patterns"

  KEYS = %w[a b ab abc a.c a/c A.C views/products/17 views/products/170 views/cards/17 x[1] x1 x* xy {1} a^b a-b 10 ü Ü \\d].freeze

  EXPRESSIONS = [
    /a/, /^a/, /\Aa/, /c$/, /c\z/, /a.c/, /a\.c/, /a\/c/, /A/i, /ü/i, /products\/17\b/, /products\/17$/, /\d+/, /\Aviews\/(?:products|cards)\//,
    /(?<!a)b/, /[ab]{2}/, /^[a-c]+$/, /x[\[*]/, /x\*/, /[[:digit:]]/, /\h/, / a b c /x, /./m, /(a)b\1?/, /a|b/, /\p{L}/, /x[^1y]/, /\\d/, /a^b/
  ].freeze

  # A glob, and the same as an expression.
  GLOBS = {
    "*" => /.*/m, "a*" => /\Aa/, "a?c" => /\Aa.c\z/, "a.c" => /\Aa\.c\z/, "x[1y]" => /\Ax[1y]\z/, "x[^1]" => /\Ax[^1]\z/, "x\\*" => /\Ax\*\z/,
    "x\\[1\\]" => /\Ax\[1\]\z/, "*17" => /17\z/, "views/*/17" => %r{\Aviews/.*/17\z}, "[a-b]" => /\A[a-b]\z/, "nothing" => /\Anothing\z/,
    "a\\^b" => /\Aa\^b\z/, "{1}" => /\A\{1\}\z/, ("*a" * 150) => /(?!)/, "\\\\d" => /\A\\d\z/
  }.freeze

  def left_of(keys, cache = @cache)
    cache.write_multi(keys.to_h { |key| [key, 1] })
    count = yield
    left = cache.read_multi(*keys).keys
    assert_equal keys.size - left.size, count
    cache.clear
    left.sort
  end

  def test_expressions
    EXPRESSIONS.each do |expression|
      assert_equal KEYS.grep_v(expression).sort, left_of(KEYS) { @cache.delete_matched(expression) }, expression.inspect
    end
  end

  def test_texts
    GLOBS.each do |glob, expression|
      assert_equal KEYS.grep_v(expression).sort, left_of(KEYS) { @cache.delete_matched(glob) }, glob
    end
  end

  def test_namespaces
    cache = store(namespace: "shop")
    @cache.write("shop2:a", 1)
    assert_equal KEYS.grep_v(/a.c/).sort, left_of(KEYS, cache) { cache.delete_matched(/a.c/) }
    assert_equal KEYS.grep_v(/\Aa/).sort, left_of(KEYS, cache) { cache.delete_matched(/^a/) }
    assert_equal KEYS.grep_v(/\Aa/).sort, left_of(KEYS, cache) { cache.delete_matched("a*") }
    assert_equal 1, @cache.read("shop2:a")
  end

  def test_many_pages_of_keys
    keys = Array.new(2_500) { |number| "k#{number}" }
    assert_equal keys.grep_v(/(?<=k)1/).sort, left_of(keys) { @cache.delete_matched(/(?<=k)1/) }
  end

  def test_expressions_by_lot
    seed = Integer(ENV.fetch("SEED") { Random.new_seed % 1_000_000 })
    puts "SEED=#{seed}"
    random = Random.new(seed)
    pieces = %w[a b . .* a? \\. [ab] [^a] (a|b) b+ \\d / ^ $ x ü (?:ab)+ a{2}]
    keys = Array.new(60) { Array.new(random.rand(1..5)) { %w[a b . / 1 x ü].sample(random: random) }.join }.uniq
    40.times do
      source = Array.new(random.rand(1..4)) { pieces.sample(random: random) }.join
      expression = Regexp.new(source, random.rand(3).zero? ? Regexp::IGNORECASE : 0)
      assert_equal keys.grep_v(expression).sort, left_of(keys) { @cache.delete_matched(expression) }, "#{expression.inspect} SEED=#{seed}"
    end
  end
end
