# frozen_string_literal: true

require "fileutils"
require "socket"
require "tmpdir"

# A daemon of a test's own, which is ended and started again with its rows.
class Daemon
  # Seconds for it to serve, or to end. Both take milliseconds; a loaded machine needs more.
  PATIENCE = 60

  attr_reader :port, :sql_port, :folder

  def initialize(*flags)
    @flags = flags
    @port = Daemon.free_port
    @sql_port = Daemon.free_port
    @folder = Dir.mktmpdir("sqlcached-ruby-", File.directory?("/dev/shm") ? "/dev/shm" : nil)
    start
    return unless block_given?

    begin
      yield self
    ensure
      remove
    end
  end

  def self.free_port
    TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
  end

  # Waits until the block is true.
  def self.wait_until(what)
    last = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until (result = yield)
      raise "not in #{PATIENCE} seconds: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > last

      sleep(0.005)
    end
    result
  end

  def location
    "127.0.0.1:#{port}"
  end

  def socket
    "#{folder}/socket"
  end

  def start(*flags)
    @process = Process.spawn(ENV.fetch("SQLCACHED_PROGRAM"), "-p", port.to_s, "-s", socket, "--arena", "#{folder}/arena",
                             "--sql-port", sql_port.to_s, "--sql-socket-dir", "none", "--http-port", "0", *@flags, *flags,
                             in: File::NULL, out: "#{folder}/log", err: "#{folder}/log")
    Daemon.wait_until("the daemon serves: #{File.read("#{folder}/log")}") { serves? }
  end

  # Ends it as an operator does (`TERM`), or as a crash does (`KILL`).
  def stop(signal = "TERM")
    return unless @process

    Process.kill(signal, @process)
    Process.wait(@process)
    @process = nil
  end

  def restart(signal = "TERM")
    stop(signal)
    start
  end

  def remove
    stop("KILL")
    FileUtils.rm_rf(folder)
  end

  private

  def serves?
    raise "the daemon ended: #{File.read("#{folder}/log")}" if Process.wait(@process, Process::WNOHANG)

    TCPSocket.open("127.0.0.1", port).close
    true
  rescue Errno::ECONNREFUSED
    false
  end
end
