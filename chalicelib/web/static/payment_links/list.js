// The list of payment links.
import { at } from "../app/api.js";
import { List } from "../app/list.js";
import { Amount, Copy, Empty, Page, Status, Time } from "../app/parts.js";
import { amount, fiat } from "../app/format.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { html } from "../app/ui.js";

/** The price of a link, as it is shown. */
export function linkPrice(link) {
  const shown = (value) =>
    (link.fiatAmount ? fiat(value, link.fiatCurrency) : html`<${Amount} value=${value} symbol=${link.currency} />`);
  const asked = link.fiatAmount ?? link.amount;
  return typeof asked === "object" ? html`<span>${shown(asked.min)} to ${shown(asked.max)}</span>` : shown(asked);
}

const COLUMNS = [
  { name: "name", label: "Name", sort: true, show: (row) => html`<span dir="auto">${row.name}</span>` },
  { name: "status", label: "Status", show: (row) => html`<${Status} value=${row.status} />` },
  { name: "price", label: "Price", align: "end", show: linkPrice },
  { name: "stock", label: "Left", align: "end", show: (row) => (row.stock === undefined ? "Any number" : amount(row.stock)) },
  { name: "expiresAt", label: "Ends", sort: true,
    show: (row) => (row.expiresAt ? html`<${Time} at=${row.expiresAt} />` : "Never") },
  { name: "createdAt", label: "Made", sort: true, show: (row) => html`<${Time} at=${row.createdAt} />` },
  { name: "url", label: "Link", show: (row) => html`<${Copy} value=${row.url} label="Copy link" what=${row.name} />` },
];
const FILTERS = [
  { name: "name", label: "Name contains", kind: "text", op: "like" },
  { name: "createdAt", label: "Made", kind: "time" },
];

/** The page "Payment links". */
export default function PaymentLinks() {
  const make = can("invoices:create") && html`<${Link} to="/payment-links/new" class="button">New payment link<//>`;
  return html`<${Page} title="Payment links" actions=${make}>
    <${List} label="Payment links" path="/payment-links" columns=${COLUMNS} filters=${FILTERS}
      to=${(row) => at`/payment-links/${row.id}`}
      empty=${html`<${Empty} title="No payment links yet" actions=${make}>A payment link is a page that makes an invoice for
        each visitor: for a shop window, a mail, a donation.<//>`} />
  <//>`;
}
