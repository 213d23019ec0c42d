// Settings → Activity: who did what, with links to what was changed.
import { can } from "../app/session.js";
import { html } from "../app/ui.js";
import { Activity } from "../keys/activity.js";
import { lookups } from "./lookups.js";

/** The page of an object by its id, where this key may see it; null for anything that has none. */
function pageOf(id) {
  const [found] = lookups(id);
  return found?.by === "id" && can(found.needs) ? found.to({ id }) : null;
}

/** The page "Activity" of the portal. */
export default function PortalActivity({ me, query }) {
  return html`<${Activity} me=${me} query=${query} pageOf=${pageOf} />`;
}
