class Alters < ActiveRecord::Migration[6.1]
  def change
    add_column :authors, :karma, :integer, null: false, default: 0, comment: "of all posts"
    add_column :authors, :posts_count, :integer, null: false, default: 0
    add_check_constraint :authors, "karma >= 0", name: "authors_karma"
    change_column_null :authors, :name, false, "unknown"
    add_index :authors, %i[karma name]
  end
end
