// The list of invoices.
import { at } from "../app/api.js";
import { List } from "../app/list.js";
import { Amount, Empty, Page, Status, Time } from "../app/parts.js";
import { fiat, shorten } from "../app/format.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { html } from "../app/ui.js";
import { useCoins } from "../catalogue/coins.js";
import { exportOf } from "../app/exports.js";
import { STATUSES } from "./words.js";

const exportAs = exportOf("invoices");

const COLUMNS = [
  { name: "id", label: "Invoice", show: (row) =>
    (row.externalId ? html`<span dir="auto">${row.externalId}</span>` : html`<code>${shorten(row.id, 4, 8)}</code>`) },
  { name: "status", label: "Status", show: (row) => html`<${Status} value=${row.status} />` },
  { name: "price", label: "Price", align: "end", show: price },
  { name: "received", label: "Received", align: "end", sort: true, show: received },
  { name: "description", label: "For", show: (row) => row.description
    && html`<span class="cut" dir="auto">${row.description}</span>` },
  { name: "createdAt", label: "Made", sort: true, show: (row) => html`<${Time} at=${row.createdAt} />` },
  { name: "expiresAt", label: "Expires", sort: true, show: (row) => html`<${Time} at=${row.expiresAt} />` },
];

/** Where the payer chooses, payments in several coins may add up: the part of the price says it. */
function received(row) {
  return row.paidPercent === undefined
    ? html`<${Amount} value=${row.received} symbol=${row.symbol} />` : `${row.paidPercent} %`;
}

function price(row) {
  if (row.fiatAmount) return html`<span class="amount">${fiat(row.fiatAmount, row.fiatCurrency)}</span>`;
  return html`<${Amount} value=${row.amount} symbol=${row.symbol} />`;
}

/** The page "Invoices". */
export default function Invoices() {
  const { slugs, coins } = useCoins();
  const networks = [...new Set(coins.map((coin) => coin.network))];
  const filters = [
    { name: "status", label: "Status", kind: "select",
      options: STATUSES.map((status) => [status, status[0].toUpperCase() + status.slice(1)]) },
    { name: "currency", label: "Coin", kind: slugs.length > 0 ? "select" : "text",
      options: slugs.map((slug) => [slug, slug.toUpperCase()]) },
    { name: "network", label: "Network", kind: networks.length > 0 ? "select" : "text", options: networks },
    { name: "createdAt", label: "Made", kind: "time" },
    { name: "externalId", label: "Your id", kind: "text" },
  ];
  const make = can("invoices:create") && html`<${Link} to="/invoices/new" class="button">New invoice<//>`;
  return html`<${Page} title="Invoices" actions=${make}>
    <${List} label="Invoices" path="/invoices/getAll" columns=${COLUMNS} filters=${filters}
      to=${(row) => at`/invoices/${row.id}`} every=${15}
      exportAs=${exportAs}
      empty=${html`<${Empty} title="No invoices yet" actions=${make}>An invoice asks one payer for one amount. You send its
        checkout link.<//>`} />
  <//>`;
}
