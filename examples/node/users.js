/** Who may log in. */
import { scrypt, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";

const hashed = promisify(scrypt);

/** Names, with the salt and the hash of their passwords. Ann's is `lamp oil`. */
const USERS = new Map([["ann", { salt: "5d1c8a40", hash: "3bab363d1b9efd5f1635a696119be291626ac6ed1ec8ca71ad1738d07d12fc13" }]]);

/** Whether this is the user's password. Of a name that nobody has it takes as long. */
export async function isUser(name, password) {
  const { salt, hash } = USERS.get(name) ?? { salt: "00000000", hash: "00".repeat(32) };
  const found = await hashed(password, salt, 32);
  return timingSafeEqual(found, Buffer.from(hash, "hex"));
}
