// A new invoice: what is asked for, and the link to send.
import { at, post } from "../app/api.js";
import { Form } from "../app/form.js";
import { Amount, Button, Card, Copy, Facts, Failure, Loading, Notice, Out, Page, Time } from "../app/parts.js";
import { fiat } from "../app/format.js";
import { Link, arriving } from "../app/router.js";
import { showSigningSecret } from "../app/shown_once.js";
import { html, useState } from "../app/ui.js";
import { useCoins } from "../catalogue/coins.js";
import { DETAILS, invoiceOf } from "./fields.js";
import { priceFields } from "./price_fields.js";

/** The page "New invoice". */
export default function NewInvoice() {
  const coins = useCoins();
  const [made, set] = useState(null);
  const done = (invoice) => {
    arriving.now = true;
    set(invoice);
    if (invoice.webhookSecret) showSigningSecret("The signing secret of this invoice's webhook", invoice.webhookSecret);
  };
  if (made) return html`<${Made} invoice=${made} again=${() => { arriving.now = true; set(null); }} />`;
  return html`<${Page} title="New invoice" lead="One payer, one amount. You get a link to a page where it is paid.">
    <${Failure} error=${coins.error} again=${coins.again} title="The coins could not be loaded" />
    ${coins.ready || coins.error
      ? html`<${Card}><${Form} fields=${[...priceFields(coins), ...DETAILS]} action="Make the invoice"
          submit=${async (values, { key }) => (await post("/invoices", invoiceOf(values), { key })).data} done=${done} /><//>`
      : html`<${Loading} />`}
  <//>`;
}

function Made({ invoice, again }) {
  const price = invoice.fiatAmount
    ? fiat(invoice.fiatAmount, invoice.fiatCurrency) : html`<${Amount} value=${invoice.amount} symbol=${invoice.symbol} />`;
  return html`<${Page} title="The invoice is made">
    <${Notice} tone="good" title="Send this link to the payer">The page shows what to pay, where to, and when
      it has arrived.<//>
    <${Card} title="Checkout"><${Facts} rows=${[
      ["Link", html`<${Out} href=${invoice.checkoutUrl} /> <${Copy} value=${invoice.checkoutUrl} what="checkout link" />`],
      ["Price", price],
      ["Your id", invoice.externalId],
      ["Can be paid until", html`<${Time} at=${invoice.expiresAt} />`],
    ]} /><//>
    <div class="actions"><${Link} to=${at`/invoices/${invoice.id}`} class="button">Open the invoice<//>
      <${Button} tone="quiet" onClick=${again}>Make another<//></div>
  <//>`;
}
