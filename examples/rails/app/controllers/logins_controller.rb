# frozen_string_literal: true

class LoginsController < ApplicationController
  def new; end

  def create
    found = User.proved(params[:name].to_s, params[:password].to_s)
    unless found
      flash.now[:notice] = "The name or the password is wrong."
      return render(:new, status: :unauthorized)
    end
    # A new session for a new role: somebody else may know the old one.
    basket = basket_size
    reset_session
    session[:user] = found.name
    session[:basket] = basket
    redirect_to root_path
  end

  def destroy
    reset_session
    redirect_to root_path
  end

  # Ends the sessions of this user on all other devices.
  def elsewhere
    return redirect_to(login_path) unless user

    count = sessions.logout_everywhere(user, keep: session.id)
    redirect_to root_path, notice: "#{count} other sessions were ended."
  end

  private

  def sessions
    @@sessions ||= Sqlcached::Sessions.new(Shop::CACHE, table: "shop_sessions")
  end
end
