# frozen_string_literal: true

require_relative "daemon"

# Hands on what clients and a daemon say, and restarts the daemon at requests that are drawn by lot. Clients keep one
# address. The request that meets the restart is lost: its connection ends, as those of a real restart do.
class Relay
  attr_reader :port, :cuts

  # From one restart to the next. A client that comes back asks a few times before its next request.
  REQUESTS = (10..40).freeze

  def initialize(daemon, seed)
    @daemon = daemon
    @random = Random.new(seed)
    @lock = Mutex.new
    @left = @random.rand(REQUESTS)
    @cuts = 0
    @server = TCPServer.new("127.0.0.1", 0)
    @port = @server.addr[1]
    @thread = Thread.new { loop { serve(@server.accept) } }
  end

  def close
    @thread.kill
    @server.close
  end

  private

  def serve(client)
    # Who comes while it restarts waits.
    daemon = @lock.synchronize { TCPSocket.new("127.0.0.1", @daemon.port) }
    [client, daemon].each { |socket| socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1) }
    Thread.new { hand_on(client, daemon) { met? } }
    Thread.new { hand_on(daemon, client) { false } }
  end

  # Until one side ends, or a request meets a restart.
  def hand_on(from, to)
    loop do
      bytes = from.readpartial(65_536)
      break if yield

      to.write(bytes)
    end
  rescue SystemCallError, IOError
    nil
  ensure
    [from, to].each { |socket| end_of(socket) }
  end

  def end_of(socket)
    socket.shutdown
  rescue SystemCallError, IOError
    nil
  end

  # Whether the request that has come meets a restart. Then the daemon is there again.
  def met?
    @lock.synchronize do
      @left -= 1
      next false if @left.positive?

      @left = @random.rand(REQUESTS)
      @daemon.restart(@random.rand(2).zero? ? "TERM" : "KILL")
      @cuts += 1
      true
    end
  end
end
