// What a webhook was sent: the list of its deliveries.
import { at } from "../app/api.js";
import { List } from "../app/list.js";
import { Empty, Status, Time } from "../app/parts.js";
import { html } from "../app/ui.js";
import { eventOptions, standing } from "./words.js";

const state = (row) => {
  const found = standing(row);
  return html`<${Status} tone=${found.tone} label=${found.label} />`;
};
const COLUMNS = [
  { name: "event", label: "Event", show: (row) => html`<code class="name">${row.event}</code>` },
  { name: "status", label: "Status", show: state },
  { name: "attempts", label: "Attempts", align: "end", show: (row) => row.attempts.length },
  { name: "lastResponseStatus", label: "Last answer", align: "end",
    show: (row) => row.lastResponseStatus ?? (row.attempts.length ? "None" : "") },
  { name: "nextAttemptAt", label: "Next attempt", show: (row) => html`<${Time} at=${row.nextAttemptAt} ago />` },
  { name: "createdAt", label: "Made", sort: true, show: (row) => html`<${Time} at=${row.createdAt} />` },
];
const FILTERS = [
  { name: "status", label: "Status", kind: "select", options: [["pending", "Waiting"], ["delivered", "Delivered"],
    ["dead", "Given up"], ["cancelled", "Cancelled"]] },
  { name: "event", label: "Event", kind: "select", options: eventOptions() },
  { name: "eventId", label: "Event's id", kind: "text" },
  { name: "redeliveryId", label: "Job that sent again", kind: "text" },
  { name: "createdAt", label: "Made", kind: "time" },
];

/** The deliveries of a webhook. */
export function Deliveries({ webhook }) {
  return html`<${List} label="Deliveries" path=${at`/webhooks/${webhook.id}/deliveries`} columns=${COLUMNS} filters=${FILTERS}
    every=${15}
    to=${(row) => at`/deliveries/${row.id}`} empty=${html`<${Empty}
      title="Nothing was sent yet">Send a test, or wait for an event.<//>`} />`;
}
