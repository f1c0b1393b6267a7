# frozen_string_literal: true

module Sqlcached
  # `cache` in a view of Rails by lease. Rails reads a fragment and writes it later, so that all who miss it make it, and
  # one that was made before an invalidation is stored behind it.
  module Fragments
    private

    def fragment_for(name = {}, options = nil, &block)
      store = controller.cache_store
      return super unless store.is_a?(ActiveSupport::Cache::SqlcachedStore)

      made = false
      fragment = store.fetch(controller.combined_fragment_cache_key(name), options) do
        made = true
        taken_out(&block)
      end
      @view_renderer.cache_hits[@current_template&.virtual_path] = made ? :miss : :hit if defined?(@view_renderer)
      fragment.html_safe
    end

    # What the block writes into the page, which is not left there: the caller writes what is in the cache.
    def taken_out
      from = output_buffer.length
      yield
      safe = output_buffer.html_safe?
      fragment = output_buffer.slice!(from..)
      self.output_buffer = output_buffer.class.new(output_buffer) if safe
      fragment.to_str
    end
  end
end
