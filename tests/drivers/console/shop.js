// A shop of `examples` as its customers and its editor use it, in Debian's Chromium. SHOP_URL: where it is.
"use strict";

const assert = require("node:assert");
const { chromium } = require("playwright-core");

const url = process.env.SHOP_URL;
const NAME = "ann";
const PASSWORD = "lamp oil";
// A product's name that would run where it is taken for markup.
const CANARY = "Lamp <img src=x onerror=document.title='taken'>";

// A browser of its own: another device.
async function device(browser) {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(60000);
  page.on("pageerror", (error) => assert.fail(String(error)));
  return page;
}

// Opens a page: the fragments that the shop had to make for it.
async function made(page, path) {
  const response = await page.goto(url + path);
  assert.strictEqual(response.status(), 200);
  return (await response.allHeaders())["x-made"];
}

const text = (page, place) => page.textContent(place);

async function logIn(page, password) {
  await page.goto(`${url}login`);
  await page.fill("#form [name=name]", NAME);
  await page.fill("#form [name=password]", password);
  await page.click("#form button");
}

async function fragments(page) {
  assert.strictEqual(await made(page, ""), "list");
  assert.strictEqual(await made(page, ""), "");
  assert.strictEqual(await made(page, "product/1"), "product.1.head product.1.reviews");
  assert.strictEqual(await made(page, "product/1"), "");
  assert.strictEqual(await text(page, "h1"), "Lamp");
  assert.strictEqual(await made(page, "product/2"), "product.2.head product.2.reviews");
}

async function basket(page, other) {
  await page.click("text=Put into basket");
  await page.click("text=Put into basket");
  assert.strictEqual(await text(page, "#basket"), "2 in your basket");
  await other.goto(url);
  assert.strictEqual(await text(other, "#basket"), "0 in your basket");
}

async function editor(page, customer) {
  await logIn(page, "wrong");
  assert.match(await text(page, "#notice"), /is wrong/);
  await logIn(page, PASSWORD);
  assert.strictEqual(await text(page, "#user"), NAME);
  await page.goto(`${url}product/1`);
  await page.click("#edit");
  await page.fill("#form [name=name]", CANARY);
  await page.fill("#form [name=price]", "35");
  await page.click("#form button");
  assert.strictEqual(await text(page, "h1"), CANARY);
  // All that shows the product was made again, and nothing else.
  assert.strictEqual(await made(customer, "product/1"), "");
  assert.strictEqual(await text(customer, "#price"), "35 €");
  assert.strictEqual(await made(customer, "product/2"), "");
  assert.strictEqual(await made(customer, ""), "list");
  assert.ok((await text(customer, "#list")).includes(CANARY));
  assert.notStrictEqual(await customer.title(), "taken");
}

async function logOutElsewhere(phone, laptop) {
  await logIn(laptop, PASSWORD);
  await phone.click("text=Log out elsewhere");
  assert.match(await text(phone, "#notice"), /^1 other/);
  assert.strictEqual(await text(phone, "#user"), NAME);
  await laptop.goto(url);
  assert.strictEqual(await laptop.$("#user"), null);
  await laptop.goto(`${url}product/1/edit`);
  assert.match(await text(laptop, "#notice"), /Only editors/);
  await phone.click("text=Log out >> nth=0");
  assert.strictEqual(await phone.$("#user"), null);
}

// A form that another site sends has no token.
async function foreign(page) {
  const answer = await page.request.post(`${url}product/1`, { form: { name: "Stolen", price: "1" } });
  assert.strictEqual(answer.status(), 403);
}

(async () => {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  try {
    const [customer, phone, laptop] = [await device(browser), await device(browser), await device(browser)];
    await fragments(customer);
    await basket(customer, phone);
    await editor(phone, customer);
    await logOutElsewhere(phone, laptop);
    await foreign(customer);
    console.log("the shop works");
  } finally {
    await browser.close();
  }
})().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
