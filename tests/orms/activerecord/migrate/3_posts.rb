class Posts < ActiveRecord::Migration[6.1]
  def change
    create_table :posts, id: :uuid, default: -> { "gen_random_uuid()" } do |table|
      table.references :author, null: false, foreign_key: { on_delete: :cascade }
      table.string :title, limit: 200, null: false
      table.text :body
      table.integer :state, null: false, default: 0
      table.decimal :price, precision: 10, scale: 2
      table.float :score
      table.boolean :shown, null: false, default: true
      table.date :day
      table.datetime :at
      table.jsonb :data, default: {}
      table.string :labels, array: true, default: []
      table.binary :raw
      table.uuid :key
      table.bigint :views
      table.timestamps
      table.index :title, where: "shown", name: "posts_shown"
    end
    create_table(:tags) { |table| table.string :name }
    create_table :posts_tags, id: false do |table|
      table.uuid :post_id, null: false
      table.bigint :tag_id, null: false
      table.index %i[post_id tag_id], unique: true
    end
  end
end
