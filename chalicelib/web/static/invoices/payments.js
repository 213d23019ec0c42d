// What was paid for an invoice: with confirmations, and the value in fiat at that time.
import { at } from "../app/api.js";
import { Table } from "../app/list.js";
import { Amount, Card, Empty, Failure, Loading, Notice, Status, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { coinName } from "../catalogue/coin_names.js";
import { TxHash } from "../catalogue/explorers.js";
import { FiatValue } from "../catalogue/fiat_value.js";
import { flagOf } from "../transactions/words.js";

const remarks = (row) => [...(row.aside ? ["a coin that does not count here"] : []),
  ...(row.flags ?? []).map((flag) => flagOf(flag)[1])];

const COLUMNS = [
  { name: "createdAt", label: "Seen",
    show: (row) => (row.id ? html`<${Link} to=${at`/transactions/${row.id}`}><${Time} at=${row.createdAt} /><//>` : null) },
  { name: "amount", label: "Amount", align: "end",
    show: (row) => html`<${Amount} value=${row.amount} symbol=${row.symbol ?? row.coin} />` },
  { name: "fiatValue", label: "Worth when paid", align: "end", show: (row) => html`<${FiatValue} value=${row.fiatValue} />` },
  { name: "status", label: "Status",
    show: (row) => html`<${Status} value=${row.status} />
      ${remarks(row).map((text) => html` <span class="fine">${text}</span>`)}` },
  { name: "confirmations", label: "Confirmations", align: "end",
    show: (row) => (row.requiredConfirmations ? `${row.confirmations} of ${row.requiredConfirmations}` : row.confirmations) },
  { name: "hash", label: "Transaction", show: (row) => html`<${TxHash} network=${row.network} hash=${row.hash} />` },
];

/** What the invoice's own record does not say of its payments. */
const OWN = ["createdAt", "status"];

/**
 * The payments of an invoice. A key that may see transactions sees all of them, another one the newest that the invoice lists.
 */
export function Payments({ invoice, moving }) {
  return html`${can("transactions:read")
    ? html`<${Transactions} invoice=${invoice} moving=${moving} />`
    : html`<${Shown} rows=${listed(invoice)} invoice=${invoice} />`}
    <${Misdirected} invoice=${invoice} />`;
}

/** The payments as the invoice's own record has them. */
export function listed(invoice) {
  return invoice.transactions.map((payment) => ({
    ...payment, network: payment.network ?? invoice.network, symbol: (payment.coin ?? invoice.currency ?? "").toUpperCase(),
  }));
}

function Transactions({ invoice, moving }) {
  const { data, error, loading, again } = useGet("/transactions", { invoiceId: invoice.id, limit: 100 },
    { every: moving ? 15 : 0 });
  return html`<${Failure} error=${error} again=${again} />${loading && data === null && html`<${Loading} />`}
    ${data && html`<${Shown} rows=${data.map((row) => ({ ...row, aside: isAside(row, invoice) }))} invoice=${invoice} />`}`;
}

/** Whether a payment came in a coin that does not count for the invoice. */
const isAside = (row, invoice) =>
  (invoice.misdirected ?? []).some((one) => one.txId === row.hash && one.coin === row.coin && one.network === row.network);

function Shown({ rows, invoice }) {
  if (rows.length === 0) {
    return html`<${Empty} title="No payment yet">Payments show up here as soon as the network has
      them${invoice.status === "pending" ? ". The checkout link is above" : ""}.<//>`;
  }
  return html`<${Table} label="Payments"
    columns=${rows[0].id ? COLUMNS : COLUMNS.filter((column) => !OWN.includes(column.name))} rows=${rows}
    rowKey=${(row) => row.id ?? `${row.hash}:${row.amount}`} />`;
}

function Misdirected({ invoice }) {
  if (!invoice.misdirected) return null;
  const columns = [
    { name: "coin", label: "Coin", show: (row) => coinName(row.coin, row.network) },
    { name: "amount", label: "Amount", align: "end",
      show: (row) => html`<${Amount} value=${row.amount} symbol=${row.coin} />` },
    { name: "txId", label: "Transaction", show: (row) => html`<${TxHash} network=${row.network} hash=${row.txId} />` },
  ];
  return html`<${Card} title="Paid in another coin"><${Notice} tone="warn" title="This does not count for the invoice">
      It is credited to your balance. Agree with the payer: send it back with a withdrawal, or complete the invoice by hand.<//>
    <${Table} label="Payments in other coins" columns=${columns} rows=${invoice.misdirected}
      rowKey=${(row) => `${row.txId}:${row.coin}:${row.amount}`} /><//>`;
}
