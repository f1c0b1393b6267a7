# frozen_string_literal: true

module Sqlcached
  # Where the daemon is, and how to talk to it. The README has the list of options.
  class Options
    NAMES = %i[location user password tls timeout connect_timeout on_failure log].freeze
    TLS = %i[ca_file cert key name].freeze

    # What happens to an invalidation that cannot be sent: it is kept and sent again, and until it got through nothing
    # is read from its table (`suspend`); the same, and the caller gets the error (`raise`); an error is logged (`log`).
    ON_FAILURE = %i[suspend raise log].freeze

    attr_reader :location, :user, :password, :tls, :timeout, :connect_timeout, :on_failure, :log

    # `given` is a location or a hash of options.
    def self.of(given)
      case given
      when Options then given
      when nil then new({})
      when String then new({ location: given })
      else new(given)
      end
    end

    def initialize(options)
      options = options.transform_keys(&:to_sym)
      unknown = options.keys - NAMES
      raise ArgumentError, "unknown options: #{unknown.join(", ")}" unless unknown.empty?

      @location = (options[:location] || "127.0.0.1:11211").to_s
      @user = options[:user]&.to_s
      @password = options[:password].to_s
      @timeout = seconds(:timeout, options.fetch(:timeout, 5.0))
      @connect_timeout = seconds(:connect_timeout, options.fetch(:connect_timeout, 1.0))
      @log = options[:log]
      @tls = tls_of(options[:tls])
      @on_failure = (options[:on_failure] || :suspend).to_sym
      raise ArgumentError, "on_failure is one of #{ON_FAILURE.join(", ")}" unless ON_FAILURE.include?(@on_failure)

      host_and_port unless unix?
    end

    # A path is a Unix socket.
    def unix?
      location.start_with?("/")
    end

    def host_and_port
      found = /\A(?:\[(?<host>[^\]]+)\]|(?<host>[^:]+)):(?<port>\d+)\z/.match(location)
      raise ArgumentError, "'#{location}' is neither host:port nor a path" unless found

      [found[:host], Integer(found[:port], 10)]
    end

    def to_s
      location
    end

    private

    def seconds(name, value)
      return Float(value) if value.is_a?(Numeric) && value.positive?

      raise ArgumentError, "#{name} is a number of seconds above 0"
    end

    def tls_of(given)
      return nil unless given

      tls = given == true ? {} : given.transform_keys(&:to_sym)
      unknown = tls.keys - TLS
      raise ArgumentError, "unknown options of tls: #{unknown.join(", ")}" unless unknown.empty?

      tls
    end
  end
end
