// Who did what: the changes of the last year, by key, by object and by time. For the portal and the console.
import { List } from "../app/list.js";
import { shorten } from "../app/format.js";
import { Code, Copy, Empty, Page, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { activityWords } from "./activity_words.js";
import { EVERY_ENVIRONMENT } from "./environments.js";

const METHODS = [["POST", "Made or done"], ["PUT", "Changed"], ["DELETE", "Removed or cancelled"]];
const ENVIRONMENTS = [["production", "Production"], ["test", "Test"]];

const LEAD =
  "Each change that was made with one of your keys, kept for a year. What was refused changed nothing, and is not here.";

/** The page "Activity". `pageOf(id)` is the page of an object or a key, or null: then its id is not linked. */
export function Activity({ me, query, pageOf = () => null, lead = LEAD }) {
  const keys = useGet("/api-keys", { ...EVERY_ENVIRONMENT, limit: 100 });
  const named = (keys.data ?? []).map((key) => [key.key_id, `${key.name} (${key.key_prefix}…)`]);
  const asked = query.key_id;
  const options = asked && !named.some(([id]) => id === asked) ? [[asked, asked], ...named] : named;
  const filters = [
    { name: "key_id", label: "Key", kind: "select", options },
    { name: "object_id", label: "Object id", kind: "text" },
    { name: "method", label: "Kind", kind: "select", options: METHODS },
    ...(me.type === "test" ? [] : [{ name: "type", label: "Environment", kind: "select", options: ENVIRONMENTS }]),
    { name: "created_at", label: "Date", kind: "time" },
  ];
  const columns = [
    { name: "created_at", label: "When", sort: true, show: (row) => html`<${Time} at=${row.created_at} />` },
    { name: "key_id", label: "Who", show: (row) => html`<${Who} row=${row} me=${me} pageOf=${pageOf} />` },
    { name: "route", label: "What", show: (row) => html`<span title=${`${row.method} ${row.route}`}>
      ${activityWords(row)}</span>` },
    { name: "object_id", label: "On what", show: (row) => html`<${What} row=${row} pageOf=${pageOf} />` },
  ];
  const everything = me.type === "production" && !query.type ? EVERY_ENVIRONMENT : {};
  return html`<${Page} title="Activity" lead=${lead}>
    <${List} path="/activity" label="Activity" columns=${columns} filters=${filters} query=${everything}
      empty=${html`<${Empty} title="Nothing was changed yet">Whatever your keys change shows up here.<//>`} />
  <//>`;
}

function Who({ row, me, pageOf }) {
  const to = pageOf(row.key_id);
  const name = to ? html`<${Link} to=${to}>${row.key_name}<//>` : row.key_name;
  return html`<span>${name} <code class="soft prefix">${row.key_prefix}…</code>${
    row.key_id === me.key_id && html` <span class="badge calm">Yours</span>`}</span>`;
}

function What({ row, pageOf }) {
  if (!row.object_id) return html`<span class="soft">–</span>`;
  const made = row.made_id && html`<br /><span class="soft">and made</span> <${Named} id=${row.made_id} pageOf=${pageOf} />`;
  return html`<span><${Named} id=${row.object_id} pageOf=${pageOf} />${made}</span>`;
}

function Named({ id, pageOf }) {
  const to = pageOf(id);
  if (!to) return html`<${Code} value=${id} head=${8} tail=${4} />`;
  return html`<span class="code"><${Link} to=${to} title=${id}><code>${shorten(id, 8, 4)}</code><//>
    <${Copy} value=${id} what=${id} /></span>`;
}
