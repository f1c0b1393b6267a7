# frozen_string_literal: true

class Product < ActiveRecord::Base
  has_many :reviews

  validates :name, presence: true, length: { maximum: 200 }
  validates :price, numericality: { only_integer: true, greater_than: 0, less_than: 1_000_000 }

  # All that shows the product, and the list. Before the commit others would make it again of the old data.
  after_commit { Rails.cache.delete_tagged(self, "products") }
end
