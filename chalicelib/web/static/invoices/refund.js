// Giving money of an invoice back: what, how much, where to; shown for a last look before it is sent; the claim link shown
// once.
import { at, post } from "../app/api.js";
import { Ask, useDialog } from "../app/dialog.js";
import { Form } from "../app/form.js";
import { fiat } from "../app/format.js";
import { Amount, Card, Facts, Failure, Loading, Notice, Out, Page, Status, Time } from "../app/parts.js";
import { Link, arriving } from "../app/router.js";
import { showOnce } from "../app/shown_once.js";
import { useGet } from "../app/use.js";
import { html, useRef, useState } from "../app/ui.js";
import { coinName, coinOf } from "../catalogue/coin_names.js";
import { useCoins } from "../catalogue/coins.js";
import { refundable } from "./actions.js";
import { refundFields, refundOf } from "./refund_fields.js";

const LOST = "If the link is lost, cancel the refund and make another.";

/** The page "Refund". */
export default function Refund({ params }) {
  const path = at`/invoices/${params.id}`;
  const { data: invoice, error, loading, again } = useGet(path);
  const coins = useCoins();
  const [checked, check, close] = useDialog();
  const [made, set] = useState(null);
  const last = useRef({ text: null, key: null });
  // Checked again and unchanged it is the same request: where its answer was lost, nothing is given back twice.
  const keyOf = (values, key) => {
    const text = JSON.stringify(refundOf(values));
    if (last.current.text !== text) last.current = { text, key };
    return last.current.key;
  };
  const back = html`<p class="fine"><${Link} to=${path}>Back to the invoice<//></p>`;
  if (made) return html`<${Made} refund=${made} path=${path} />`;
  const ready = invoice && (coins.ready || coins.error);
  return html`<${Page} title="Refund" lead="The amount is frozen at once, and paid by a withdrawal with all its rules.">${back}
    <${Failure} error=${error} again=${again} />
    ${(loading && !invoice) || (invoice && !ready) ? html`<${Loading} />` : null}
    ${ready && (refundable(invoice)
      ? html`<div class="columns"><${Card}><${Form} fields=${refundFields(invoice, coins)} action="Check"
          submit=${async (values, { key }) => check({ values, key: keyOf(values, key) })} /><//>
            <${Basis} invoice=${invoice} /></div>`
      : html`<${Notice} title="There is nothing to refund">Nothing is credited for this invoice yet.<//>`)}
    ${checked && html`<${Ask} title="Give this back?" action="Refund" tone="danger"
      words=${html`<${Summary} values=${checked.values} invoice=${invoice} />`}
      run=${async () => (await post(`${path}/refunds`, refundOf(checked.values), { key: checked.key })).data}
      close=${(refund) => {
        close();
        if (!refund) return;
        arriving.now = true;
        set(refund);
        if (refund.claimUrl) show(refund);
      }} />`}
  <//>`;
}

function Basis({ invoice }) {
  const coin = (value) => value && html`<${Amount} value=${value} symbol=${invoice.symbol} />`;
  return html`<${Card} title=${invoice.externalId ?? "Invoice"}><${Facts} rows=${[
    ["Status", html`<${Status} value=${invoice.status} />`],
    ["Price", invoice.fiatAmount ? fiat(invoice.fiatAmount, invoice.fiatCurrency) : coin(invoice.amount)],
    ["Received", coin(invoice.received)],
    ["Overpaid", coin(invoice.overpaid)],
  ]} />
  ${["pending", "partial"].includes(invoice.status) && html`<${Notice} tone="warn" title="This invoice is still open">
    What you give back still counts as paid. Cancel the invoice first if the rest must not complete it.<//>`}<//>`;
}

function Summary({ values, invoice }) {
  const unit = values.mode === "fiat" ? invoice.fiatCurrency : values.coin
    ? coinName(coinOf(values.coin).coin) : invoice.symbol;
  return html`<${Facts} rows=${[
    ["Amount", values.amount ? `${values.amount} ${unit}` : invoice.status === "completed" && invoice.overpaid
      ? `What was overpaid: ${invoice.overpaid} ${invoice.symbol}` : "All that is credited and not given back yet"],
    values.mode === "fiat"
      && ["Paid out in", values.coin
        ? coinName(coinOf(values.coin).coin, coinOf(values.coin).network) : "The coin that was paid most"],
    ["Goes to", values.to === "address" ? html`<code>${values.address}</code>` : "An address that the payer names by a link"],
    ["Reason", values.reason],
  ]} />${values.to === "address"
    && html`<p>Nobody can take it back from there: compare the address with what the payer told you.</p>`}`;
}

function show(refund) {
  showOnce({
    title: "Send this link to the payer now", secret: refund.claimUrl, name: "The claim link",
    words: html`<p>Whoever has the link names the address that is paid.</p>`,
    facts: [
      ["The payer's page", html`<${Out} href=${refund.claimUrl}>Look at it<//>`],
      ["Can be claimed until", html`<${Time} at=${refund.expiresAt} />`],
    ],
    lost: LOST,
  });
}

function Made({ refund, path }) {
  return html`<${Page} title="The refund is made">
    ${refund.claimUrl && html`<${Notice} title="The payer names an address by its claim link">${LOST}<//>`}
    <${Card} title="Refund"><${Facts} rows=${[
      ["Status", html`<${Status} value=${refund.status} />`],
      ["Amount", html`<${Amount} value=${refund.amount} symbol=${refund.coin} />`],
      refund.fiatAmount && ["Asked for", fiat(refund.fiatAmount, refund.fiatCurrency)],
      ["Network", refund.network],
      ["Address", refund.address && html`<code>${refund.address}</code>`],
      refund.expiresAt && ["Can be claimed until", html`<${Time} at=${refund.expiresAt} />`],
      ["Reason", refund.reason],
    ]} /><//>
    <p><${Link} to=${path} query=${{ tab: "refunds" }} class="button quiet">Back to the invoice<//></p><//>`;
}
