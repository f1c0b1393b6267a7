/** The shop's own data, in a file. */
import { readFile, rename, writeFile } from "node:fs/promises";

const FILE = process.env.SHOP_DATABASE ?? "shop.json";

const FIRST = {
  1: { name: "Lamp", price: 29, reviews: ["Bright.", "It came in two days."] },
  2: { name: "Chair", price: 89, reviews: ["Comfortable."] },
  3: { name: "Desk", price: 249, reviews: [] },
};

/** All products by their numbers. */
export async function products() {
  try {
    return JSON.parse(await readFile(FILE, "utf8"));
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    return structuredClone(FIRST);
  }
}

/** A product; undefined if there is none. */
export async function product(id) {
  const all = await products();
  return Object.hasOwn(all, id) ? all[id] : undefined;
}

/** Changes a product. A reader sees the file before the change or after it. */
export async function change(id, values) {
  const all = await products();
  Object.assign(all[id], values);
  await writeFile(`${FILE}.new`, JSON.stringify(all));
  await rename(`${FILE}.new`, FILE);
}
