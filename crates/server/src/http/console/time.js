// The server's time. The clock of the browser may be another one, and what happened a second ago would be an hour old.

// A difference that is worth a thought, in milliseconds: less is the way of an answer.
const SKEW = 2000;
let ahead = 0;

export const now = () => Date.now() + ahead;

// Takes note of what the server's time was just now.
export function setNow(moment) {
  const skew = moment - Date.now();
  ahead = Math.abs(skew) > SKEW ? skew : 0;
}
