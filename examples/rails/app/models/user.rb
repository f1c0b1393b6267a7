# frozen_string_literal: true

require "openssl"

# Who may edit products.
class User < ActiveRecord::Base
  # What OpenSSL recommends for a login.
  COST = { N: 16_384, r: 8, p: 1, length: 32 }.freeze

  def self.add(name, password)
    salt = SecureRandom.random_bytes(16)
    create!(name: name, salt: salt, password_hash: digest(password, salt))
  end

  # The user of a name and a password. An unknown name takes as long as a wrong password.
  def self.proved(name, password)
    user = find_by(name: name)
    known = digest(password, user ? user.salt : "unknown")
    user if user && ActiveSupport::SecurityUtils.secure_compare(user.password_hash, known)
  end

  def self.digest(password, salt)
    OpenSSL::KDF.scrypt(password, salt: salt, **COST)
  end
end
