# frozen_string_literal: true

require "socket"

module Sqlcached
  # One stream to the daemon's memcached port. It is used for one request at a time.
  class Connection
    # Whether it answered before, so that a failure may mean only that the daemon was restarted since.
    attr_reader :used

    # The process that opened it: another one must not talk on it.
    attr_reader :process

    def initialize(options)
      @options = options
      @process = Process.pid
      @used = false
      @ended = false
      @failures = []
      @buffer = String.new(encoding: Encoding::BINARY)
      @at = 0
      @deadline = now + options.connect_timeout
      @socket = open
    rescue SystemCallError, SocketError, IOError => why
      raise unavailable(why.message)
    end

    # Does something with the stream, within the time of a call.
    def run
      @deadline = now + @options.timeout
      result = yield self
      @used = true
      result
    rescue RefusedError
      @used = true
      raise
    rescue SystemCallError, IOError, *@failures => why
      @ended = true
      raise unavailable(why.message)
    end

    # Whether the daemon has not closed it meanwhile. Between two requests there is nothing to read.
    def alive?
      @at == @buffer.bytesize && @socket.to_io.wait_readable(0).nil?
    end

    # Whether the other side has closed it.
    def ended?
      @ended
    end

    # Without a farewell of TLS: after a fork it would be the other process's.
    def close
      @socket.to_io.close
    rescue SystemCallError, IOError
      nil
    end

    def send(request)
      at = 0
      while at < request.bytesize
        part = at.zero? ? request : request.byteslice(at..)
        sent = @socket.write_nonblock(part, exception: false)
        sent.is_a?(Symbol) ? wait(sent) : at += sent
      end
    end

    # One line without its end.
    def line
      from = @at
      until (stop = @buffer.index("\n", from))
        from = @buffer.bytesize
        raise strange("a line without an end") if from - @at > Limits::ANSWER

        from -= fill
      end
      last = stop > @at && @buffer.getbyte(stop - 1) == 0x0d ? stop - 1 : stop
      text = @buffer.byteslice(@at, last - @at)
      @at = stop + 1
      text
    end

    # A data block of this size, and its line end.
    def block(size)
      raise strange("a value of #{size} bytes") if size > Limits::VALUE

      fill while @buffer.bytesize - @at < size + 2
      data = @buffer.byteslice(@at, size)
      ends = @buffer.getbyte(@at + size) == 0x0d && @buffer.getbyte(@at + size + 1) == 0x0a
      raise strange("a value that is longer than announced") unless ends

      @at += size + 2
      data
    end

    # An answer that is not memcached's: the stream is out of step, or this is another server.
    def strange(what)
      unavailable(what)
    end

    # The error of an answer.
    def refused(line)
      if (found = /\AERROR ([0-9A-Z]{5}) (.*)\z/n.match(line))
        return StatementError.new(found[1], Keys.as_text(found[2]))
      end
      return RefusedError.new(Keys.as_text(line)) if line.match?(/\A(?:ERROR|CLIENT_ERROR|SERVER_ERROR)\b/n)

      strange("an answer that is not memcached's: #{Keys.as_text(line[0, 200])}")
    end

    private

    # Reads what is there; how many bytes left the buffer, so that places in it move by as many.
    def fill
      left = @at
      @buffer = @buffer.byteslice(@at..) if @at.positive?
      @at = 0
      until (got = @socket.read_nonblock(Limits::CHUNK, exception: false)).is_a?(String)
        got.nil? ? close_seen : wait(got)
      end
      @buffer << got
      left
    end

    def close_seen
      @ended = true
      raise unavailable("the connection was closed")
    end

    def wait(direction)
      left = @deadline - now
      io = @socket.to_io
      ready = left.positive? && (direction == :wait_writable ? io.wait_writable(left) : io.wait_readable(left))
      raise unavailable("no answer in time") unless ready
    end

    def open
      return UNIXSocket.new(@options.location) if @options.unix?

      host, port = @options.host_and_port
      socket = Socket.tcp(host, port, connect_timeout: @options.connect_timeout)
      socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
      @options.tls ? secured(socket, host) : socket
    end

    def secured(socket, host)
      require "openssl"
      @failures = [OpenSSL::SSL::SSLError]
      tls = OpenSSL::SSL::SSLSocket.new(socket, context)
      tls.hostname = @options.tls[:name] || host
      @socket = tls
      until (state = tls.connect_nonblock(exception: false)).equal?(tls)
        wait(state)
      end
      tls.post_connection_check(@options.tls[:name] || host)
      tls
    rescue OpenSSL::SSL::SSLError, OpenSSL::X509::StoreError => why
      socket.close
      raise unavailable(why.message)
    rescue UnavailableError
      socket.close
      raise
    end

    def context
      tls = @options.tls
      context = OpenSSL::SSL::SSLContext.new
      context.set_params(verify_mode: OpenSSL::SSL::VERIFY_PEER, **(tls[:ca_file] ? { ca_file: tls[:ca_file] } : {}))
      context.min_version = OpenSSL::SSL::TLS1_2_VERSION
      if tls[:cert]
        context.cert = OpenSSL::X509::Certificate.new(File.read(tls[:cert]))
        context.key = OpenSSL::PKey.read(File.read(tls.fetch(:key)))
      end
      context
    end

    def unavailable(why)
      UnavailableError.new("#{@options}: #{why}")
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
