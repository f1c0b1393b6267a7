/** A change of a product, and what is removed then. */
import { fragments } from "./cache.js";
import * as database from "./database.js";

/** Commits first. A fragment that is made of the old product meanwhile is not stored. */
export async function change(id, values) {
  await database.change(id, values);
  return fragments.invalidateTags([`product.${id}`]);
}
