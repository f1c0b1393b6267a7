# frozen_string_literal: true

class ApplicationController < ActionController::Base
  # The fragments that this request has made.
  class Made < ActiveSupport::CurrentAttributes
    attribute :names

    ActiveSupport::Notifications.subscribe("cache_generate.active_support") do |*, payload|
      self.names = [*names, Array(payload[:key]).last]
    end
  end

  layout "shop"
  protect_from_forgery with: :exception
  helper_method :user, :basket_size
  before_action { Made.names = [] }
  after_action { response.headers["X-Made"] = Made.names.join(" ") }

  private

  def user
    session[:user]
  end

  def basket_size
    session[:basket].to_i
  end
end
