# frozen_string_literal: true

class ProductsController < ApplicationController
  before_action :editors_only, only: %i[edit update]

  def index
    # The list is asked for only where its fragment is missing: a relation is read when it is used.
    @products = Product.order(:id)
  end

  def show
    # A fragment needs the id alone.
    @id = Integer(params[:id], 10)
  end

  def edit
    @product = Product.find(params[:id])
  end

  def update
    @product = Product.find(params[:id])
    return redirect_to(product_path(@product)) if @product.update(params.permit(:name, :price))

    flash.now[:notice] = @product.errors.full_messages.join(". ")
    render :edit, status: :unprocessable_entity
  end

  def basket
    session[:basket] = basket_size + 1
    redirect_to product_path(params[:id])
  end

  private

  def editors_only
    redirect_to login_path, notice: "Only editors may do that." unless user
  end
end
