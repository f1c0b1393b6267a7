# Dalli 3 with its defaults, which are the binary protocol. Argument: the port.
require "dalli"

def check(held, what)
  raise what unless held
end

client = Dalli::Client.new("127.0.0.1:#{ARGV[0]}", expires_in: 100)
check client.set("k", { "a" => 1 }), "set"
check client.get("k") == { "a" => 1 }, "get"
check client.get("none").nil?, "a miss"
check !client.add("k", 2) && client.replace("k", 2), "add and replace"
client.replace("none", 1)
check client.get("none").nil?, "replace of nothing"
check client.incr("n", 3, 100, 10) == 10 && client.incr("n", 3) == 13 && client.decr("n", 20).zero?, "counting"
check client.incr("absent", 1).nil?, "a number that is not made"
check client.set("s", "b", 100, raw: true) && client.append("s", "c") && client.prepend("s", "a"), "append and prepend"
check client.get("s", raw: true) == "abc", "what was joined"
check client.touch("k", 200) && client.gat("k", 300) == 2, "touch and gat"
values = (0...500).to_h { |number| ["key-#{number}", "value-#{number}" * number] }
client.multi { values.each { |key, value| client.set(key, value) } }
check client.get_multi(*values.keys, "none") == values, "get_multi"
check client.cas("k") { |value| value + 1 } && client.get("k") == 3, "cas"
check client.fetch("made") { 7 } == 7 && client.get("made") == 7, "fetch"
check client.set("large", "x" * (256 << 10), 100, raw: true) && client.get("large", raw: true).size == 256 << 10, "a large value"
check client.delete("k") && !client.delete("k"), "delete"
check client.version.values == ["1.6.45"], "version"
check client.stats.values.first["curr_items"].to_i.positive?, "stats"
check client.stats(:items).values.first, "stats items"
check client.reset_stats && client.alive!, "reset and alive"
client.flush
check client.get("s").nil?, "flush"
client.close
puts "held"
