// The refunds of an invoice.
import { at, del } from "../app/api.js";
import { Ask, useDialog } from "../app/dialog.js";
import { Table } from "../app/list.js";
import { Amount, Button, Code, Empty, Failure, Loading, Status, Time } from "../app/parts.js";
import { fiat, isZero } from "../app/format.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";

const CANCELLABLE = ["awaiting_claim", "pending"];

export function InvoiceRefunds({ invoice }) {
  const { data, error, loading, again } = useGet(at`/invoices/${invoice.id}/refunds`, {}, { every: 15 });
  const [asked, ask, close] = useDialog();
  const make = can("withdrawals:create") && !isZero(invoice.received ?? "0")
    && html`<${Link} to=${at`/invoices/${invoice.id}/refund`} class="button quiet">Refund<//>`;
  const columns = [
    { name: "createdAt", label: "Made", show: (row) => html`<${Time} at=${row.createdAt} />` },
    { name: "status", label: "Status",
      show: (row) => html`<${Status} value=${row.status} />
        ${row.failureReason && html` <span class="fine">${row.failureReason}</span>`}` },
    { name: "amount", label: "Amount", align: "end",
      show: (row) => html`<${Amount} value=${row.amount} symbol=${row.coin} />
        ${row.fiatAmount && html` <span class="soft">${fiat(row.fiatAmount, row.fiatCurrency)}</span>`}` },
    { name: "address", label: "Goes to",
      show: (row) =>
      (row.address
        ? html`<${Code} value=${row.address} what="address" />`
        : html`<span class="soft">The payer names an address until <${Time} at=${row.expiresAt} /></span>`) },
    { name: "reason", label: "Reason", show: (row) => row.reason },
    { name: "withdrawalId", label: "Paid by",
      show: (row) => row.withdrawalId && html`<${Link} to=${at`/withdrawals/${row.withdrawalId}`}>Withdrawal<//>` },
    { name: "cancel", label: "", show: (row) => can("withdrawals:create") && CANCELLABLE.includes(row.status)
      && html`<${Button} tone="quiet" onClick=${() => ask(row)}>Cancel<//>` },
  ];
  return html`<${Failure} error=${error} again=${again} />${loading && data === null && html`<${Loading} />`}
    ${data?.length === 0
      && html`<${Empty} title="No refunds" actions=${make}>What you give back to the payer is listed here.<//>`}
    ${data?.length > 0 && html`<${Table} label="Refunds" columns=${columns} rows=${data} />`}
    ${asked && html`<${Ask} title="Cancel the refund" action="Cancel the refund" tone="danger"
      run=${async () => (await del(at`/refunds/${asked.id}`)).data}
      words=${html`<p>The payer does not get <${Amount} value=${asked.amount} symbol=${asked.coin} />, and the money is
        available to you again. A claim link pays nobody any more.</p>`}
      close=${(done) => { close(); if (done) again(); }} />`}`;
}
