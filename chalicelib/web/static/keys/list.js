// Settings → API keys: all keys of the merchant that this one may know of.
import { at } from "../app/api.js";
import { List } from "../app/list.js";
import { Empty, Page, Status, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { html } from "../app/ui.js";
import { EVERY_ENVIRONMENT } from "./environments.js";
import { kind, summary } from "./words.js";

export const Kind = ({ of }) =>
  html`<${Status} value=${of.type} label=${kind(of)} tone=${of.type === "test" ? "calm" : "warn"} />`;

const ENVIRONMENTS = [["production", "Production"], ["test", "Test"]];
const STATUSES = [["active", "Active"], ["suspended", "Suspended"], ["expired", "Expired"], ["revoked", "Revoked"]];

const LEAD = "A key lets a program, or a person on these pages, act for you. Give each its own, with no more than it needs.";

const when = (time) => (time ? html`<${Time} at=${time} />` : html`<span class="soft">Never</span>`);

function Prefix({ of, me }) {
  const own = of.key_id === me.key_id && html` <span class="badge calm">Yours</span>`;
  return html`<span><code class="prefix">${of.key_prefix}…</code>${own}</span>`;
}

/** The page "API keys". */
export default function Keys({ me }) {
  const columns = [
    { name: "name", label: "Name", sort: true, show: (key) => html`${key.name}` },
    { name: "key_prefix", label: "Key", show: (key) => html`<${Prefix} of=${key} me=${me} />` },
    ...(me.type === "test" ? [] : [{ name: "type", label: "Environment", show: (key) => html`<${Kind} of=${key} />` }]),
    { name: "permissions", label: "It may", show: (key) => summary(key.permissions) },
    { name: "last_used_at", label: "Last used", show: (key) => when(key.last_used_at) },
    { name: "expires_at", label: "Expires", sort: true, show: (key) => when(key.expires_at) },
    { name: "status", label: "Status", show: (key) => html`<${Status} value=${key.status} />` },
  ];
  const filters = [
    { name: "name", label: "Name", kind: "text", op: "like" },
    { name: "status", label: "Status", kind: "select", options: STATUSES },
    ...(me.type === "test" ? [] : [{ name: "type", label: "Environment", kind: "select", options: ENVIRONMENTS }]),
  ];
  const generate = can("keys:write") && html`<${Link} to="/settings/keys/new" class="button">Generate New Key<//>`;
  return html`<${Page} title="API keys" actions=${generate} lead=${LEAD}>
    <${List} path="/api-keys" label="API keys" columns=${columns} filters=${filters} query=${EVERY_ENVIRONMENT}
      rowKey=${(key) => key.key_id} to=${(key) => at`/settings/keys/${key.key_id}`}
      empty=${html`<${Empty} title="No keys yet" actions=${generate}>What you make shows up here.<//>`} />
  <//>`;
}
