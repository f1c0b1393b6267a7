class First < ActiveRecord::Migration[6.1]
  def change
    create_table :authors, comment: "who writes" do |table|
      table.string :name, limit: 80
      table.timestamps
      table.index :name, unique: true
    end
  end
end
