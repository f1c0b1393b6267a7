# frozen_string_literal: true

require "etc"
require "open3"
require_relative "../own"

# Daemons that ask for a password, that speak TLS, and the Unix socket.
class AccessTest < OwnTest
  TABLE = "access"
  # A debug build proves passwords slowly, on a machine that is busy with other tests.
  SLOW = { timeout: 60, connect_timeout: 60 }.freeze

  def setup
    @notes = []
    @folder = Dir.mktmpdir("sqlcached-ruby-access-")
  end

  def teardown
    @daemon&.remove
    FileUtils.rm_rf(@folder)
  end

  def command(*command)
    said, status = Open3.capture2e(*command)
    assert status.success?, "#{command.join(" ")}: #{said}"
  end

  def as(user, password)
    store(@daemon.location, user: user, password: password, **SLOW)
  end

  def test_roles
    # The superuser has the name of the user who runs the daemon.
    operator = Etc.getpwuid.name
    File.write("#{@folder}/rules", "host all #{operator} 127.0.0.1/32 trust\nhost all all all password protocol=memcached\n")
    @daemon = Daemon.new("--hba-file", "#{@folder}/rules", "--roles-file", "#{@folder}/roles")
    ["app PASSWORD 'secret' IN ROLE pg_read_all_data, pg_write_all_data", "report PASSWORD 'look' IN ROLE pg_read_all_data",
     "boss PASSWORD 'secret' SUPERUSER"].each do |role|
      command("psql", "-X", "-q", "-h", "127.0.0.1", "-p", @daemon.sql_port.to_s, "-U", operator, "-d", "x", "-c", "CREATE USER #{role}")
    end
    # A prefix is the superuser's to give.
    refute as("app", "secret").write("a", 1)
    assert_match(/a superuser must make the table access:\nCREATE TABLE IF NOT EXISTS/, @notes.join)
    assert as("boss", "secret").write("a", 1, tags: ["t"])
    app = as("app", "secret")
    assert_equal 1, app.read("a")
    assert_equal 1, app.delete_tagged("t")
    assert app.write("b", 2)
    report = as("report", "look")
    assert_equal 2, report.read("b")
    refute report.write("b", 3)
    assert_nil report.clear
    assert_equal 2, app.read("b")
    assert_nil as("app", "wrong").read("b")
    assert_nil store(@daemon.location, **SLOW).read("b")
    app.clear
    assert_nil app.read("b")
  end

  def test_tls
    certificate, key = %w[cert.pem key.pem].map { |file| "#{@folder}/#{file}" }
    command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
            "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate)
    @daemon = Daemon.new("-Z", "-o", "ssl_chain_cert=#{certificate},ssl_key=#{key}")
    cache = store(@daemon.location, tls: { ca_file: certificate }, **SLOW)
    values = Array.new(30) { |number| ["k#{number}", Random.bytes(20_000)] }.to_h
    assert cache.write_multi(values)
    assert_equal values, cache.read_multi(*values.keys)
    assert cache.write("large", "y" * 1_000_000, compress: false)
    assert_equal 1_000_000, cache.read("large").size
    child = fork { exit!(cache.read("large").size == 1_000_000 ? 0 : 1) }
    assert_equal 0, Process.wait2(child)[1].exitstatus
    assert_equal values, cache.read_multi(*values.keys)
    # A certificate that nobody vouches for, one of another name, and no TLS.
    [true, { ca_file: certificate, name: "other" }, false].each do |tls|
      assert_nil store(@daemon.location, tls: tls, timeout: 1).read("large"), tls.inspect
    end
  end

  def test_the_unix_socket
    @daemon = Daemon.new
    cache = store(@daemon.socket)
    assert cache.write("a", 1)
    assert_equal 1, cache.read("a")
    @daemon.stop("KILL")
    assert_nil cache.read("a")
    @daemon.start
    assert_equal 1, cache.read("a")
  end
end
