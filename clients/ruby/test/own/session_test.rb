# frozen_string_literal: true

require_relative "../own"
require "action_dispatch"
require "action_dispatch/middleware/session/sqlcached_store"
require "rack/mock"

# Sessions of Rails, and their users.
class SessionTest < OwnTest
  TABLE = "sessions_cache"
  SESSIONS = "own_sessions"

  def setup
    super
    @sessions = sessions
    @sessions.table.clear
  end

  def teardown
    super
    @sessions.table.close
  end

  def sessions(location = Place.location)
    Sqlcached::Sessions.new({ location: location, log: method(:noted) }, table: SESSIONS)
  end

  # A browser of an application that sets what its request says, and answers what the session has.
  class Browser
    def initialize(sessions, **options)
      store = ActionDispatch::Session::SqlcachedStore.new(method(:answer), { key: "sid", sessions: sessions }.merge(options))
      jar = ->(env) { ActionDispatch::Cookies.new(store).call(env) }
      @request = Rack::MockRequest.new(jar)
      @cookie = nil
    end

    attr_accessor :cookie

    def get(query = "", &during)
      @during = during
      response = @request.get("/?#{query}", @cookie ? { "HTTP_COOKIE" => @cookie } : {})
      set = Array(response.headers["Set-Cookie"]).join("\n")[/^sid=[^;]+/]
      @cookie = set if set
      response.body
    end

    def sid
      Rack::Session::SessionId.new(@cookie.delete_prefix("sid="))
    end

    private

    def answer(env)
      request = ActionDispatch::Request.new(env)
      request.session.destroy if request.GET.delete("logout")
      request.session.to_h
      @during&.call
      request.GET.each { |name, value| request.session[name] = value }
      [200, {}, [request.session.to_h.except("session_id").to_json]]
    end
  end

  def test_a_session_is_kept
    browser = Browser.new(@sessions)
    assert_equal "{}", browser.get
    assert_nil browser.cookie
    browser.get("user_id=7")
    assert_equal '{"user_id":"7"}', browser.get
    assert_equal 1, @sessions.count(7)
    assert_equal '{"user_id":"7","cart":"3"}', browser.get("cart=3")
    # The database has the digest of what the browser knows.
    assert_empty @sessions.table.sql("SELECT key FROM own_sessions WHERE key = ?", [browser.sid.public_id])
    assert_equal "{}", browser.get("logout=1")
    assert_equal 0, @sessions.count(7)
  end

  def test_a_user_is_logged_out_everywhere
    browsers = Array.new(3) { Browser.new(@sessions).tap { |browser| browser.get("user_id=7") } }
    other = Browser.new(@sessions)
    other.get("user_id=8")
    assert_equal 2, @sessions.logout_everywhere(7, keep: browsers[0].sid)
    assert_equal ['{"user_id":"7"}', "{}", "{}"], browsers.map(&:get)
    assert_equal '{"user_id":"8"}', other.get
    assert_equal 1, @sessions.logout_everywhere(7)
    assert_equal "{}", browsers[0].get
  end

  def test_a_request_does_not_bring_an_ended_session_back
    browser = Browser.new(@sessions)
    browser.get("user_id=7")
    browser.get("cart=1") { @sessions.logout_everywhere(7) }
    assert_equal "{}", browser.get
    assert_equal 0, @sessions.count(7)
  end

  def test_a_user_of_another_name
    browser = Browser.new(@sessions, principal: ->(session) { session["name"] })
    browser.get("name=it%27s+%7Bann%7D")
    assert_equal 1, @sessions.count("it's {ann}")
    assert_equal 1, @sessions.logout_everywhere("it's {ann}")
  end

  def test_an_id_that_nobody_gave_begins_no_session
    browser = Browser.new(@sessions)
    browser.cookie = "sid=#{"0" * 32}"
    browser.get("user_id=7")
    refute_equal "0" * 32, browser.sid.public_id
  end

  def test_sessions_end
    browser = Browser.new(@sessions, expire_after: 60)
    browser.get("user_id=7")
    passed(40)
    # A use moves the end.
    assert_equal '{"user_id":"7"}', browser.get
    passed(40)
    assert_equal '{"user_id":"7"}', browser.get
    passed(61)
    assert_equal "{}", browser.get
  end

  def test_a_session_that_does_not_load_is_none
    browser = Browser.new(@sessions)
    browser.get("user_id=7")
    @sessions.table.sql("UPDATE own_sessions SET body = 'garbage'")
    assert_equal "{}", browser.get
    assert_equal 1, @sessions.table.broken
  end

  def test_flush_all_leaves_sessions
    browser = Browser.new(@sessions)
    browser.get("user_id=7")
    TCPSocket.open("127.0.0.1", Place::PORT) do |stream|
      stream.write("flush_all\r\n")
      assert_equal "OK\r\n", stream.gets
    end
    assert_equal '{"user_id":"7"}', browser.get
  end

  def test_while_the_daemon_is_away_no_session_is_overwritten
    Daemon.new do |daemon|
      own = sessions(daemon.location)
      browser = Browser.new(own)
      browser.get("user_id=7")
      cookie = browser.cookie
      daemon.stop
      assert_equal '{"cart":"1"}', browser.get("cart=1")
      assert_equal cookie, browser.cookie
      assert_raises(Sqlcached::UnavailableError) { own.logout_everywhere(8) }
      daemon.start
      # Until the removal got through nobody is logged in.
      wait_until("the session is there again") { browser.get == '{"user_id":"7"}' }
    end
  end
end
