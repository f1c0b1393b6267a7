// Whether the figures are those of now, in the line at the top: live, waited for, or missing since when.
import { at } from "./dom.js";
import { Away } from "./ask.js";
import { clock, duration } from "./words.js";

// An answer that takes longer is worth a word, in milliseconds.
const PATIENCE = 2500;

// When the server answered last, since when an answer is waited for, and why there was none.
let seen = null;
let asked = null;
let failure = null;

function say(state, words) {
  // Who hears the page is told of another state, and not of each second that it lasts.
  if (at("state").dataset.state !== state) at("said").textContent = words;
  at("state").dataset.state = state;
  if (at("state").textContent !== words) at("state").textContent = words;
}

const since = (time) => `${clock(time)} (${duration((Date.now() - time) / 1000)})`;

export function tellState() {
  const waits = asked !== null && Date.now() - asked > PATIENCE;
  if (failure) say("lost", `no figures${seen ? ` since ${since(seen)}` : ""}: ${failure}; asking again`);
  else if (waits) say("waiting", `waiting for an answer since ${since(asked)}`);
  else if (seen === null) say("loading", "waiting for the first figures");
  else say("live", "live");
}

export const isAway = () => failure !== null;

// Waits for answers, and takes note of what became of them. What the server refuses to this role is an answer.
export async function attend(answers) {
  asked = Date.now();
  try {
    const result = await answers;
    [seen, failure] = [Date.now(), null];
    return result;
  } catch (error) {
    if (error instanceof Away) failure = error.message; else throw error;
    return undefined;
  } finally {
    asked = null;
    tellState();
  }
}
