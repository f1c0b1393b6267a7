# frozen_string_literal: true

require_relative "../own"
require "action_controller"
require "action_view"
require "action_view/testing/resolvers"

# `cache` in a view.
class FragmentTest < OwnTest
  TABLE = "fragments"

  # A controller with a view that caches what a block makes.
  class Pages < ActionController::Base
    self.perform_caching = true
    self.view_paths = [ActionView::FixtureResolver.new("pages/show.html.erb" => <<~ERB)]
      <main><% cache "part", tags: ["t"], skip_digest: true do %><b><%= @make.call %></b><% end %></main>
    ERB

    def show
      @make = request.env["make"]
      render "pages/show"
    end
  end

  def page(&make)
    env = Rack::MockRequest.env_for("/").merge("make" => make)
    Pages.cache_store = @cache
    Pages.action(:show).call(env)[2].each.to_a.join.strip
  end

  def test_a_fragment_is_made_once
    assert_equal "<main><b>1 &lt; 2</b></main>", page { "1 < 2" }
    assert_equal "<main><b>1 &lt; 2</b></main>", page { flunk "made again" }
    assert_equal 1, @cache.delete_tagged("t")
    assert_equal "<main><b>3</b></main>", page { 3 }
  end

  def test_a_fragment_that_was_made_before_an_invalidation_is_not_stored
    old = page do
      @cache.delete_tagged("t")
      "old"
    end
    assert_equal "<main><b>old</b></main>", old
    assert_equal "<main><b>new</b></main>", page { "new" }
    assert_equal "<main><b>new</b></main>", page { flunk "made again" }
  end

  def test_a_fragment_that_fails_leaves_nothing
    assert_raises(ActionView::Template::Error) { page { raise "no" } }
    assert_equal "<main><b>yes</b></main>", page { "yes" }
  end
end
