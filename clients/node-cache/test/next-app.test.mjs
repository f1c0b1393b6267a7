/** A small application of Next, built once and served by two servers on one store. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Daemon, freePort } from "./daemon.mjs";

const app = fileURLToPath(new URL("next-app", import.meta.url));
const next = [`${app}/node_modules/next/dist/bin/next`];
const daemon = new Daemon();

class Server {
  async start() {
    this.port ??= await freePort();
    const env = { ...process.env, SQLCACHED: daemon.location, NEXT_TELEMETRY_DISABLED: "1" };
    this.process = spawn(process.execPath, [...next, "start", "-H", "127.0.0.1", "-p", String(this.port)], { cwd: app, env, stdio: "inherit" });
    await daemon.until(() => this.get("/cached/start").catch(() => null), "the server serves");
  }

  async get(path) {
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`);
    assert.equal(response.status, 200, path);
    return response.text();
  }

  /** What a page shows: what a cached function made, and what the page itself made. */
  async page(path) {
    const found = /<i>([0-9a-f-]+)<\/i>.*<b>([0-9a-f-]+)<\/b>/s.exec(await this.get(path));
    return { data: found[1], page: found[2] };
  }

  async revalidate(what) {
    const response = await fetch(`http://127.0.0.1:${this.port}/revalidate`, { method: "POST", body: JSON.stringify(what) });
    assert.equal(await response.text(), "done");
  }

  end() {
    return new Promise((resolve) => {
      this.process.once("exit", resolve);
      this.process.kill("SIGKILL");
    });
  }
}

const [one, two] = [new Server(), new Server()];

before(async () => {
  await daemon.start();
  const env = { ...process.env, SQLCACHED: "127.0.0.1:1", NEXT_TELEMETRY_DISABLED: "1" };
  const build = spawn(process.execPath, [...next, "build"], { cwd: app, env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [build.stdout, build.stderr]) stream.on("data", (data) => (said += data));
  const [code] = await once(build, "exit");
  assert.ok(code === 0 && !said.includes("Sqlcached"), said);
  await Promise.all([one.start(), two.start()]);
});
after(async () => {
  await Promise.all([one.end(), two.end()]);
  await daemon.end();
});

test("what one server made the other one serves, until a tag is revalidated in one of them", async () => {
  for (const id of ["built", "17"]) {
    const made = await one.page(`/product/${id}`);
    assert.deepEqual(await one.page(`/product/${id}`), made);
    assert.deepEqual(await two.page(`/product/${id}`), made);
    const text = await two.get(`/cached/${id}`);
    assert.equal(await one.get(`/cached/${id}`), text);
    await two.revalidate({ tag: `product:${id}` });
    for (const server of [one, two]) assert.notEqual(await server.get(`/cached/${id}`), text);
    const again = await one.page(`/product/${id}`);
    assert.notEqual(again.page, made.page);
    assert.notEqual(again.data, made.data);
    assert.deepEqual(await two.page(`/product/${id}`), again);
    assert.equal(await one.get(`/cached/${id}`), await two.get(`/cached/${id}`));
  }
});

test("a path is revalidated for both", async () => {
  const [made, other] = [await one.page("/product/21"), await one.page("/product/22")];
  await one.revalidate({ path: "/product/21" });
  assert.notEqual((await two.page("/product/21")).page, made.page);
  assert.deepEqual(await two.page("/product/22"), other);
});

test("a tag with a profile is served once more and then made again", async () => {
  const made = await one.page("/product/31");
  const text = await one.get("/cached/31");
  await one.revalidate({ tag: "product:31", profile: { expire: 3_600 } });
  await daemon.until(async () => (await two.page("/product/31")).page !== made.page, "the page is made again");
  await daemon.until(async () => (await two.get("/cached/31")) !== text, "the function runs again");
});

test("a restart of the cache keeps what was made, and while it is away pages are served", async () => {
  const made = await one.page("/product/41");
  await daemon.kill();
  assert.notEqual((await one.page("/product/41")).page, undefined);
  assert.match(await two.get("/cached/41"), /^[0-9a-f-]+$/);
  await daemon.start();
  await daemon.until(async () => (await two.page("/product/41")).page === made.page, "the page is there again");
});

test("revalidated entries leave nothing behind", async () => {
  await one.revalidate({ tag: "shop" });
  assert.deepEqual(await daemon.sql("SELECT key FROM next WHERE tags && ARRAY['shop']"), []);
});
