# frozen_string_literal: true

# The shop: where the cache is, where the shop's own data is, and its pages.
ENV["RAILS_ENV"] ||= "production"
ENV["DATABASE_URL"] ||= "sqlite3:#{ENV.fetch("SHOP_DATABASE") { File.expand_path("../shop.sqlite3", __dir__) }}"

require "securerandom"
require "logger"
require "rails"
require "active_support/core_ext/numeric/time"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"
require "sqlcached"

class Shop < Rails::Application
  CACHE = ENV.fetch("SQLCACHED", "127.0.0.1:11211")

  config.root = File.expand_path("..", __dir__)
  config.eager_load = true
  config.logger = Logger.new($stderr)
  config.log_level = :warn
  # A new key at each start ends all cookies. An application keeps its own.
  config.secret_key_base = ENV.fetch("SECRET_KEY_BASE") { SecureRandom.hex(64) }

  config.action_controller.perform_caching = true
  config.cache_store = :sqlcached_store, CACHE, { table: "shop_pages", expires_in: 1.day }
  config.session_store :sqlcached_store, location: CACHE, table: "shop_sessions", key: "_shop",
                                         principal: ->(session) { session["user"] }
  config.action_dispatch.rescue_responses["ActionController::InvalidAuthenticityToken"] = :forbidden

  routes.append do
    root "products#index"
    get "product/:id", to: "products#show", as: :product
    get "product/:id/edit", to: "products#edit", as: :edit_product
    post "product/:id", to: "products#update"
    post "product/:id/basket", to: "products#basket", as: :basket
    get "login", to: "logins#new"
    post "login", to: "logins#create"
    post "logout", to: "logins#destroy"
    post "logout/elsewhere", to: "logins#elsewhere", as: :elsewhere
  end
end
