/** The shop: `PORT=8000 node shop.js`. */
import { randomBytes } from "node:crypto";
import express from "express";
import session from "express-session";
import { fragments, sessions } from "./cache.js";
import * as database from "./database.js";
import { change } from "./editor.js";
import { isUser } from "./users.js";
import * as views from "./views.js";

const app = express();
app.disable("x-powered-by");
app.use(express.urlencoded({ extended: false }));
app.use(
  session({
    store: sessions,
    secret: process.env.SHOP_SECRET ?? randomBytes(32).toString("hex"),
    cookie: { sameSite: "lax" },
    resave: false,
    saveUninitialized: false,
  }),
);

/** A piece of a page from the cache. The header X-Made names those that were made for this answer. */
async function fragment(response, name, tags, make) {
  const text = await fragments.getOrSet(
    name,
    async () => {
      response.locals.made.push(name);
      return (await make()).text;
    },
    { tags, ttl: 600_000 },
  );
  return views.stored(text);
}

/** A form comes from a page of ours if it has the session's token. */
app.use((request, response, next) => {
  response.locals.made = [];
  const { token } = request.session;
  if (request.method === "GET" || (token !== undefined && request.body?.token === token)) return next();
  response.status(403);
  show(request, response, "Not from here", "", "This form is not from this shop.");
});

function show(request, response, title, body, notice) {
  const { session } = request;
  session.token ??= randomBytes(16).toString("hex");
  const visit = { user: session.user, basket: session.basket?.length ?? 0, token: session.token, notice: notice ?? session.notice };
  if (notice === undefined) delete session.notice;
  response.set("X-Made", response.locals.made.join(" "));
  response.send(views.page(visit, title, typeof body === "function" ? body(visit) : body));
}

app.get("/", async (request, response) => {
  const all = await fragment(response, "list", ["product.1", "product.2", "product.3"], async () => views.list(await database.products()));
  show(request, response, "The shop", all);
});

app.param("id", async (request, response, next, id) => {
  request.product = await database.product(id);
  if (request.product !== undefined) return next();
  response.status(404);
  show(request, response, "Not here", "", "There is no such product.");
});

app.get("/product/:id", async (request, response) => {
  const { id } = request.params;
  const made = async (piece) => fragment(response, `product.${id}.${piece}`, [`product.${id}`], async () => views[piece](await database.product(id)));
  const pieces = [await made("head"), await made("reviews")];
  show(request, response, "A product", (visit) => views.product(visit, id, pieces));
});

app.post("/product/:id/basket", (request, response) => {
  request.session.basket = [...(request.session.basket ?? []), request.params.id];
  response.redirect(303, `/product/${request.params.id}`);
});

/** What editors alone may do. */
function editors(request, response, next) {
  if (request.session.user) return next();
  response.status(403);
  show(request, response, "Editors", "", "Only editors may do this.");
}

app.get("/product/:id/edit", editors, (request, response) => {
  show(request, response, "Edit", (visit) => views.edit(visit, request.params.id, request.product));
});

app.post("/product/:id", editors, async (request, response) => {
  const { name = "", price = "" } = request.body;
  if (name === "" || !/^\d{1,6}$/.test(price)) {
    response.status(400);
    return show(request, response, "Edit", (visit) => views.edit(visit, request.params.id, { name, price }), "A product has a name and a price.");
  }
  await change(request.params.id, { name, price: Number(price) });
  response.redirect(303, `/product/${request.params.id}`);
});

app.get("/login", (request, response) => show(request, response, "Log in", views.login));

app.post("/login", async (request, response, next) => {
  const { name = "", password = "" } = request.body;
  if (!(await isUser(name, password))) return show(request, response, "Log in", views.login, "The name or the password is wrong.");
  const { basket } = request.session;
  // Who logs in has a new session, whose name nobody else can know.
  request.session.regenerate((error) => {
    if (error) return next(error);
    Object.assign(request.session, { user: name, basket });
    response.redirect(303, "/");
  });
});

app.post("/logout", (request, response, next) => {
  request.session.destroy((error) => (error ? next(error) : response.redirect(303, "/")));
});

app.post("/logout-elsewhere", editors, async (request, response) => {
  const ended = await sessions.destroyUser(request.session.user, { keep: request.sessionID });
  request.session.notice = `${ended} other ${ended === 1 ? "device was" : "devices were"} logged out.`;
  response.redirect(303, "/");
});

/** While the cache is away there are no sessions: an empty one in its place would log everybody out. */
app.use((error, request, response, _next) => {
  console.error(error);
  response.status(503).type("text").send("The shop is closed for a moment.\n");
});

const server = app.listen(Number(process.env.PORT ?? 8000), "127.0.0.1", () => {
  console.log(`The shop is at http://127.0.0.1:${server.address().port}/`);
});
