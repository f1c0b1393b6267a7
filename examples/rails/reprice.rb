# frozen_string_literal: true

# Changes a price from outside of the shop's pages, as a job does: ruby reprice.rb PRODUCT PRICE
require_relative "config/application"

Shop.initialize!
Product.find(ARGV.fetch(0)).update!(price: Integer(ARGV.fetch(1), 10))
