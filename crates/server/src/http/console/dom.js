// Elements of the page. Whatever the server holds is put into the page as text: nothing here takes markup.

export const at = (id) => document.getElementById(id);

// An element with these properties or attributes, and with these children: elements, or texts.
export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [property, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (property in element) element[property] = value; else element.setAttribute(property, value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

// A button that does something; as a link looks where it opens what it names.
export const button = (words, act, properties = {}) => make("button", { type: "button", onclick: act, ...properties }, words);

// The address of a page of the console, with what it shows there.
export function address(page, parts = [], query = {}) {
  const path = [page, ...parts].map(encodeURIComponent).join("/");
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== "")).toString();
  return `#/${path}${asked ? `?${asked}` : ""}`;
}

export const link = (words, href, properties = {}) => make("a", { href, ...properties }, words);

// A part of a page with its title.
export function section(title, ...children) {
  return make("section", { "aria-label": title }, make("h3", {}, title), ...children);
}

// A box that scrolls by itself where its table is wider than the window. The keyboard scrolls it, too.
export const scroller = (label, table) => make("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": label }, table);

// Names with their values. What has no value is left out.
export function facts(pairs) {
  const list = make("dl", { className: "facts" });
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    list.append(make("dt", {}, name), make("dd", {}, value instanceof Node ? value : String(value)));
  }
  return list;
}

// Shows something above the page until it is closed.
export function open(title, ...content) {
  at("details-title").textContent = title;
  at("details-body").replaceChildren(...content.filter(Boolean));
  if (!at("details").open) at("details").showModal();
}

export const close = () => at("details").close();
