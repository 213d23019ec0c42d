// What happened: the events of the last 30 days, delivered to a webhook or not.
import { at } from "../app/api.js";
import { shorten } from "../app/format.js";
import { List } from "../app/list.js";
import { Empty, Page, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { html } from "../app/ui.js";
import { eventOptions, eventWords } from "../webhooks/words.js";
import { nameOf, placeOf } from "./places.js";

function about(row) {
  const place = placeOf(row, can);
  const name = shorten(nameOf(row), 12, 6);
  return place ? html`<${Link} to=${place}>${name}<//>` : name;
}

const COLUMNS = [
  { name: "words", label: "What", show: (row) => eventWords(row.event) },
  { name: "event", label: "Event", show: (row) => html`<code class="name">${row.event}</code>` },
  { name: "about", label: "About", show: about },
  { name: "timestamp", label: "When", sort: true, show: (row) => html`<${Time} at=${row.timestamp} />` },
];
const FILTERS = [
  { name: "event", label: "Event", kind: "select", options: eventOptions() },
  { name: "objectId", label: "About (id)", kind: "text" },
  { name: "timestamp", label: "When", kind: "time" },
];

/** The page "Events". */
export default function Events() {
  return html`<${Page} title="Events" lead="Everything that webhooks are told, for 30 days: also what nobody was told.">
    <${List} label="Events" path="/events" columns=${COLUMNS} filters=${FILTERS} to=${(row) => at`/events/${row.id}`}
      every=${15}
      empty=${html`<${Empty} title="Nothing happened yet">Make an invoice, and its events show up here.<//>`} />
  <//>`;
}
