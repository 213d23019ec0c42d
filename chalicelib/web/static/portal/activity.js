// Settings → Activity: who did what, with links to what was changed.
import { can } from "../app/session.js";
import { html } from "../app/ui.js";
import { Activity } from "../keys/activity.js";
import { pageOf } from "../app/lookups.js";

/** The page "Activity" of the portal. */
export default function PortalActivity({ me, query }) {
  return html`<${Activity} me=${me} query=${query} pageOf=${(id) => pageOf(id, can)} />`;
}
