// Refunds of all invoices, and one of them.
import { at, del } from "../app/api.js";
import { Ask, useDialog } from "../app/dialog.js";
import { List } from "../app/list.js";
import { Amount, Button, Card, Code, Empty, Facts, Failure, Loading, Notice, Page, Short, Status, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { cancellable, claimSays, settled } from "../withdrawals/words.js";

const COLUMNS = [
  { name: "id", label: "Refund", show: (row) => html`<${Amount} value=${row.amount} symbol=${row.coin} />` },
  { name: "status", label: "Status", show: (row) => html`<${Status} value=${row.status} />` },
  { name: "invoiceId", label: "Invoice", show: (row) => html`<${Link} to=${at`/invoices/${row.invoiceId}`}><${Short}
    value=${row.invoiceId} head=${10} tail=${4} /><//>` },
  { name: "reason", label: "Reason", show: (row) => row.reason ?? "" },
  { name: "createdAt", label: "Made", sort: true, show: (row) => html`<${Time} at=${row.createdAt} />` },
];
const FILTERS = [
  { name: "invoiceId", label: "Invoice", kind: "text" },
  { name: "coin", label: "Coin", kind: "text" },
  { name: "network", label: "Network", kind: "text" },
  { name: "address", label: "To address", kind: "text" },
  { name: "createdAt", label: "Made", kind: "time" },
];

/** The pages "Refunds" and of one refund. */
export default function Refunds({ params }) {
  if (params.id) return html`<${Refund} id=${params.id} />`;
  return html`<${Page} title="Refunds"
    lead="Money of invoices that went back, or waits for its payer to say where to. Make one on the invoice's page.">
    <${List} label="Refunds" path="/refunds" columns=${COLUMNS} filters=${FILTERS} to=${(row) => at`/refunds/${row.id}`}
      empty=${html`<${Empty} title="No refunds yet" actions=${can("invoices:read") && html`<${Link} to="/invoices"
        class="button quiet">To the invoices<//>`}>
        Open an invoice that was paid, and press Refund.<//>`} /><//>`;
}

function Refund({ id }) {
  const { data: record, error, loading, again, put } = useGet(at`/refunds/${id}`, {}, { every: 15 });
  if (!record) return html`<${Page} title="Refund">${loading && html`<${Loading} />`}<${Failure} error=${error}
    again=${again} /><//>`;
  return html`<${Page} title=${`Refund of ${record.amount} ${record.coin.toUpperCase()}`} actions=${html`<${Cancel}
    record=${record} path="/refunds" put=${put} />`}>
    <${Failure} error=${error} again=${again} /><${Standing} record=${record} />
    <${Card} title="Refund"><${Facts} rows=${[
      ["Invoice", html`<${Link} to=${at`/invoices/${record.invoiceId}`}>${record.invoiceId}<//>`],
      ["Asked for as", record.mode === "fiat" ? `${record.fiatAmount} ${record.fiatCurrency}` : "the coin that was paid"],
      ["Reason", record.reason], ...common(record)]} /><//><//>`;
}

/** How a refund or a claim link stands. */
export function Standing({ record }) {
  const tones = { completed: "good", failed: "bad", expired: "warn", processing: "busy", pending: "busy" };
  const tone = tones[record.status] ?? "calm";
  return html`<${Notice} tone=${tone} title=${claimSays(record.status)}>
    ${record.failureReason && html`<p>${record.failureReason}</p>`}
    ${record.status === "awaiting_claim" &&
      html`<p>Its link was shown once, when it was made. If it is lost, cancel this one and make another.</p>`}
    ${!settled(record.status) && html`<p class="fine">This page looks again by itself.</p>`}<//>`;
}

/** The facts that refunds and claim links have in common. */
export function common(record) {
  return [
    ["Amount", html`<${Amount} value=${record.amount} symbol=${record.coin} />`],
    ["Network", record.network],
    ["Paid to", record.address && html`<${Code} value=${record.address} what="address" />`],
    ["Paid by", record.withdrawalId && html`<${Link} to=${at`/withdrawals/${record.withdrawalId}`}>${record.withdrawalId}<//>`],
    ["Link can be used until", record.expiresAt && html`<${Time} at=${record.expiresAt} ago />`],
    ["Made", html`<${Time} at=${record.createdAt} ago />`],
    ["Id", html`<${Code} value=${record.id} what="id" />`],
  ];
}

/** The button that cancels a refund or a claim link, where that can be done. `put(record)` shows what came of it. */
export function Cancel({ record, path, put }) {
  const [asked, ask, close] = useDialog();
  if (!cancellable(record.status) || !can("withdrawals:create")) return null;
  return html`<${Button} tone="danger" onClick=${() => ask()}>Cancel<//>
    ${asked && html`<${Ask} title="Cancel it?" action="Cancel it" tone="danger"
      words=${`Nobody is paid by it any more, and ${record.amount} ${record.coin.toUpperCase()} are available again.`}
      run=${() => del(`${path}/${encodeURIComponent(record.id)}`)}
        close=${(done) => { close(); if (done) put(done.data); }} />`}`;
}
