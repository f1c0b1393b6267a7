/** Pages and their pieces. */

/** HTML that was made here, and is not escaped once more. */
class Html {
  constructor(text) {
    this.text = text;
  }
}

const ESCAPED = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

const shown = (value) => {
  if (value instanceof Html) return value.text;
  if (Array.isArray(value)) return value.map(shown).join("");
  return String(value ?? "").replace(/[&<>"']/g, (letter) => ESCAPED[letter]);
};

/** A template, whose values are escaped. */
const html = (parts, ...values) => new Html(parts.reduce((text, part, at) => text + shown(values[at - 1]) + part));

/** A piece of HTML that was stored. */
export const stored = (text) => new Html(text);

export const list = (products) => html`<ul id="list">
${Object.entries(products).map(([id, { name, price }]) => html`<li><a href="/product/${id}">${name}</a>, ${price} €</li>\n`)}</ul>`;

export const head = ({ name, price }) => html`<h1>${name}</h1>
<p id="price">${price} €</p>`;

export const reviews = ({ reviews }) => html`<ul id="reviews">${reviews.map((text) => html`<li>${text}</li>`)}</ul>`;

const hidden = ({ token }) => html`<input type="hidden" name="token" value="${token}">`;

const button = (visit, action, text) => html`<form method="post" action="${action}">${hidden(visit)}<button>${text}</button></form>`;

/** A whole page. `visit` is who sees it: user, basket, token, notice. */
export const page = (visit, title, body) => html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${title}</title></head>
<body>
<nav><a href="/">The shop</a> <span id="basket">${visit.basket} in your basket</span>
${visit.user ? html`<b id="user">${visit.user}</b>
${button(visit, "/logout", "Log out")}
${button(visit, "/logout-elsewhere", "Log out elsewhere")}` : html`<a href="/login">Log in</a>`}</nav>
${visit.notice ? html`<p id="notice">${visit.notice}</p>` : ""}
${body}
</body>
</html>
`.text;

export const product = (visit, id, pieces) => html`${pieces}
${button(visit, `/product/${id}/basket`, "Put into basket")}
${visit.user ? html`<a id="edit" href="/product/${id}/edit">Edit</a>` : ""}`;

export const edit = (visit, id, { name, price }) => html`<form id="form" method="post" action="/product/${id}">${hidden(visit)}
<input name="name" value="${name}"> <input name="price" type="number" value="${price}"> <button>Save</button></form>`;

export const login = (visit) => html`<form id="form" method="post" action="/login">${hidden(visit)}
<input name="name"> <input name="password" type="password"> <button>Log in</button></form>`;
