# frozen_string_literal: true

module Sqlcached
  # The bounds of this package, each with its reason.
  module Limits
    # The longest key of memcached's protocol, with the table's prefix. Longer keys go by SQL to the same rows.
    KEY = 250

    # A command line that the daemon takes has 2,048 bytes. This leaves room for the flags of the longest command.
    LINE = 1_900

    # Keys of one batch that is asked for: its commands fit into the kernel's buffers while nobody reads the answers.
    KEYS = 200

    # Commands and bytes of one batch that is written: a command more costs nothing then, and memory is not doubled.
    BATCH = 500
    BATCH_BYTES = 1_048_576

    # Bytes that are read at once. The answer to a hundred small keys fits.
    CHUNK = 131_072

    # The longest line of an answer that is believed: the daemon's largest result in one row.
    ANSWER = 1_073_741_824

    # The longest value that is believed: what a daemon can be told to store at most (`-I 1g`).
    VALUE = 1_073_741_824

    # memcached's last moment. A row with this deadline outlives the table's `ttl`.
    FOREVER = 2_147_483_647

    # Above this number of seconds memcached takes an exptime for a Unix time.
    MONTH = 2_592_000

    # The longest deadline that a statement is given: a thousand years.
    TTL = 31_557_600_000

    # Seconds that a value with `race_condition_ttl` is kept beyond its deadline, as Rails' own stores do.
    RACE = 300

    # Bytes of removals that wait for a daemon that is away. Beyond them the table is emptied instead.
    PENDING = 262_144

    # Seconds before a removal is sent again: a daemon that restarts is back within a third of a second.
    RETRIES = [0.05, 0.25].freeze

    # Seconds between two attempts to send what waits, and to reach a host that did not even refuse.
    RETRY = 1.0

    # Seconds between two warnings of a kind. A daemon that is away fails thousands of times a second.
    WARN_EVERY = 60

    # Seconds for which a missing value is reserved for the one who computes it.
    LEASE = 30

    # Seconds that others wait for it before they compute it for themselves.
    LEASE_WAIT = 10.0

    # Seconds between two looks at a value that another computes: short at first, since most values take little time.
    PAUSE_MIN = 0.005
    PAUSE_MAX = 0.1

    # memcached's largest number.
    NUMBER = (1 << 64) - 1

    # Attempts of an arithmetic that the daemon cannot do. Each fails only because another client succeeded.
    ATTEMPTS = 1_000

    # Connections that a process keeps for its threads: as many as Puma has, and some more.
    IDLE = 16

    # Keys of one page, where the daemon cannot judge a pattern itself.
    PAGE = 1_000

    # The longest pattern of GLOB that the daemon takes.
    GLOB = 256
  end
end
