// Who did what: the operator's own keys, and what any admin key did on the operator's routes.
import { can } from "../app/session.js";
import { html } from "../app/ui.js";
import { Activity } from "../keys/activity.js";

const LEAD =
  "What any admin key changed on the operator's routes, and what your own keys changed besides; kept for a year.";

const PLACES = [
  [/^mch_/, "merchant:read", (id) => `/merchants/${id}`],
  [/^wd_/, "withdrawals:read", (id) => `/withdrawals/${id}`],
  [/^col_/, "addresses:read", (id) => `/collections/${id}`],
];

/** The console's page of an object by its id, where this key may see it; null for anything that has none. */
function pageOf(id) {
  const found = PLACES.find(([form, needs]) => form.test(id) && can(needs));
  return found ? found[2](encodeURIComponent(id)) : null;
}

/** The page "Activity". */
export default function ConsoleActivity({ me, query }) {
  return html`<${Activity} me=${me} query=${query} pageOf=${pageOf} lead=${LEAD} />`;
}
