# frozen_string_literal: true

# Makes the shop's database: three products, their reviews, and an editor.
require_relative "config/application"

Shop.initialize!
ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define do
  create_table(:products, force: true) do |table|
    table.string :name, null: false
    table.integer :price, null: false
  end
  create_table(:reviews, force: true) do |table|
    table.references :product, null: false
    table.string :text, null: false
  end
  create_table(:users, force: true) do |table|
    table.string :name, null: false
    table.binary :salt, :password_hash, null: false
  end
end
[["Lamp", 30], ["Chair", 120], ["Desk", 300]].each do |name, price|
  Product.create!(name: name, price: price).reviews.create!(text: "I like the #{name.downcase}.")
end
User.add("ann", "lamp oil")
puts "#{Product.count} products"
