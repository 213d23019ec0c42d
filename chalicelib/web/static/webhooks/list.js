// The merchant's webhooks: where events are sent, and how each endpoint does.
import { at, post } from "../app/api.js";
import { Dialog, useDialog } from "../app/dialog.js";
import { Form } from "../app/form.js";
import { List } from "../app/list.js";
import { Button, Empty, Page, Status, Time } from "../app/parts.js";
import { countOf, shorten } from "../app/format.js";
import { go } from "../app/router.js";
import { can } from "../app/session.js";
import { showSigningSecret } from "../app/shown_once.js";
import { html } from "../app/ui.js";
import { webhookBody, webhookFields } from "./fields.js";
import { health } from "./words.js";

const told = (webhook) => (webhook.events.includes("*") ? "Everything" : countOf(webhook.events.length, "event"));

const COLUMNS = [
  { name: "url", label: "URL", sort: true, show: (row) => html`<code title=${row.url}>${shorten(row.url, 40, 12)}</code>` },
  { name: "status", label: "Health", sort: true, show: (row) => { const found = health(row); return html`<${Status}
    tone=${found.tone} label=${found.label} />`; } },
  { name: "events", label: "Is told", show: told },
  { name: "createdAt", label: "Made", sort: true, show: (row) => html`<${Time} at=${row.createdAt} />` },
];
const FILTERS = [
  { name: "status", label: "Status", kind: "select", options: [["active", "Active"], ["paused", "Paused"],
    ["disabled", "Off"]] },
  { name: "url", label: "URL contains", kind: "text", op: "like" },
];

/** The page "Webhooks". */
export default function Webhooks() {
  const [making, make, close] = useDialog();
  const may = can("webhooks:write");
  const button = may && html`<${Button} onClick=${() => make()}>New webhook<//>`;
  return html`<${Page} title="Webhooks" actions=${button}
    lead="Your server is told of what happens: each event is sent until it is answered with success.">
    <${List} label="Webhooks" path="/webhooks" columns=${COLUMNS} filters=${FILTERS} to=${(row) => at`/webhooks/${row.id}`}
      every=${30}
      empty=${html`<${Empty} title="No webhook yet" actions=${button}>Name the URL of your server, and it is told of payments
        at once.<//>`} />
    ${making && html`<${NewWebhook} close=${close} />`}
  <//>`;
}

function NewWebhook({ close }) {
  const done = (made) => {
    showSigningSecret("Your webhook's secret", made.secret);
    go(at`/webhooks/${made.id}`);
  };
  const submit = async (values, options) => (await post("/webhooks", webhookBody(values), options)).data;
  return html`<${Dialog} title="New webhook" close=${close}>
    <${Form} fields=${webhookFields()} action="Make it" submit=${submit} done=${done} cancel=${close} />
  <//>`;
}
