/** Changes the price of a product: `node reprice.js 1 35`. */
import { product } from "./database.js";
import { change } from "./editor.js";

const [id, price] = process.argv.slice(2);
const found = await product(id);
if (found === undefined || !/^\d+$/.test(price)) {
  console.error("usage: node reprice.js PRODUCT PRICE");
  process.exit(1);
}
const removed = await change(id, { price: Number(price) });
console.log(`${found.name} costs ${price}, ${removed} fragments removed`);
