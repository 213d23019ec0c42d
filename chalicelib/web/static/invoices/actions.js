// What can be done with an invoice: refund, more time, cancel, a status by hand.
import { at, del, post, put } from "../app/api.js";
import { Ask, Dialog, useDialog } from "../app/dialog.js";
import { Form } from "../app/form.js";
import { isZero } from "../app/format.js";
import { Button } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { html } from "../app/ui.js";
import { STATUSES } from "./words.js";

/** Whether more time can be given: an expired invoice gets it only while nothing was paid. */
function extendable(invoice) {
  if (["pending", "partial"].includes(invoice.status)) return true;
  return invoice.status === "expired" && isZero(invoice.received ?? "0") && isZero(invoice.unconfirmed ?? "0");
}

const cancellable = (invoice) => ["pending", "partial"].includes(invoice.status);
export const refundable = (invoice) => !isZero(invoice.received ?? "0")
  || (invoice.choices ?? []).some((choice) => !isZero(choice.received));

/** The buttons beside the heading. `changed(invoice)` is told of the record after a change. */
export function InvoiceActions({ invoice, changed }) {
  const [asked, ask, close] = useDialog();
  const path = at`/invoices/${invoice.id}`;
  const ended = (record) => {
    close();
    if (record) changed(record);
  };
  return html`
    ${can("withdrawals:create") && refundable(invoice)
      && html`<${Link} to=${at`/invoices/${invoice.id}/refund`} class="button">Refund<//>`}
    ${can("invoices:write") && html`
      ${extendable(invoice) && html`<${Button} tone="quiet" onClick=${() => ask("extend")}>More time<//>`}
      ${cancellable(invoice) && html`<${Button} tone="quiet" onClick=${() => ask("cancel")}>Cancel<//>`}
      <${Button} tone="quiet" onClick=${() => ask("status")}>Set status<//>`}
    ${asked === "extend" && html`<${Dialog} title="Give more time" close=${close}>
      <p>The price stays what it was.</p>
      <${Form} action="Give more time" cancel=${close} done=${ended}
        fields=${[{ name: "expiresIn", label: "Minutes from now", kind: "number", required: true, value: "60",
          hint: "30 days at most." }]}
        submit=${async ({ expiresIn }) =>
          (await post(`${path}/extend`, { expiresIn: Math.round(expiresIn * 60) })).data} /><//>`}
    ${asked === "cancel" && html`<${Ask} title="Cancel the invoice" action="Cancel the invoice" tone="danger" close=${ended}
      run=${async () => (await del(path)).data}
      words=${"It is cancelled for good. What was paid stays yours; what is paid afterwards is credited to you and "
        + "completes nothing."} />`}
    ${asked === "status" && html`<${Dialog} title="Set the status by hand" close=${close}>
      <p>From then on nothing changes the status by itself. Payments are still credited and shown. It is
        recorded with your key.</p>
      <${Form} action="Set the status" cancel=${close} danger done=${ended} fields=${[
        { name: "status", label: "Status", kind: "select", required: true,
          options: [...STATUSES.map((each) => [each, each]), ["other", "Another one…"]] },
        { name: "other", label: "Its name", kind: "text", required: true, most: 64, hint: "a-z, 0-9, _ and -",
          when: (values) => values.status === "other" },
      ]} submit=${async ({ status, other }) => {
        const { data } = await put("/invoices", { invoiceId: invoice.id, status: other ?? status });
        return { ...invoice, status: data.newStatus };
      }} /><//>`}`;
}
