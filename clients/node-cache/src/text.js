"use strict";

/** NUL and half a surrogate pair are no text of a database. ESC marks them, and so itself. */
function text(value) {
  return value.replace(/[\0\x1b]|\p{Surrogate}/gu, (letter) => `\x1b${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** What was stored so. */
function original(stored) {
  return stored.replace(/\x1b([0-9a-f]{4})/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
}

/** The first text behind all those that begin with a prefix; null if there is none. */
function after(prefix) {
  const letters = Array.from(prefix);
  while (letters.length > 0) {
    const code = letters.pop().codePointAt(0);
    // What surrogates would be is no letter.
    if (code < 0x10ffff) return letters.join("") + String.fromCodePoint(code + 1 === 0xd800 ? 0xe000 : code + 1);
  }
  return null;
}

module.exports = { text, original, after };
