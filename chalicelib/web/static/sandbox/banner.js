// The strip over each page for test keys: no real money here, and what can be made to happen to the object that the page shows.
import { at, post } from "../app/api.js";
import { Dialog, useDialog } from "../app/dialog.js";
import { Form } from "../app/form.js";
import { isZero } from "../app/format.js";
import { Button, Failure, Loading, Out } from "../app/parts.js";
import { match, useRoute } from "../app/router.js";
import { can, isTest } from "../app/session.js";
import { lookSoon, useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { coinKey, coinName, coinOf } from "../catalogue/coin_names.js";
import { ClockForm, MineForm, PayForm, RateForm, ReorgForm, SettleForm } from "./forms.js";

/** Tools that fit every page: [name, the button's text, the dialog's title, component]. */
const ALWAYS = [
  ["mine", "Mine", "Mine blocks", MineForm], ["reorg", "Reorganise", "Reorganise", ReorgForm],
  ["clock", "Move clock", "Move the clock", ClockForm], ["rate", "Set rate", "Set a rate", RateForm],
];

/** The tool of the object that a page shows: `{ name, title, show }`; null where it shows none. */
function ofPage(path) {
  const invoice = match("/invoices/:id", path);
  if (invoice && invoice.id !== "new" && can("invoices:read")) return { name: "pay", title: "Pay this invoice",
    show: () => html`<${PayInvoice} id=${invoice.id} />` };
  const address = match("/addresses/:id", path);
  if (address && can("addresses:read")) return { name: "pay", title: "Pay into this address",
    show: () => html`<${PayAddress} id=${address.id} />` };
  const withdrawal = match("/withdrawals/:id", path);
  if (withdrawal?.id.startsWith("wd_")) return { name: "settle", title: "Settle this withdrawal",
    show: () => html`<${SettleForm} id=${withdrawal.id} />` };
  return null;
}

/** The banner. */
export function SandboxBanner() {
  const { path } = useRoute();
  const [open, ask, close] = useDialog();
  if (!isTest()) return null;
  const own = ofPage(path);
  const may = can("sandbox:write");
  const [, , title, Tool] = ALWAYS.find(([name]) => name === open) ?? [];
  return html`<div class="sandbox" role="region" aria-label="Sandbox">
    <p><strong>Sandbox.</strong> Nothing here is real money.</p>
    ${may && html`<div class="actions">
      ${own && html`<${Button} onClick=${() => ask("own")}>${own.title}<//>`}
      ${ALWAYS.map(([name, label]) => html`<${Button} key=${name} tone="quiet" onClick=${() => ask(name)}>${label}<//>`)}
    </div>`}
    ${open === "own" && own && html`<${Dialog} title=${own.title} close=${close}>${own.show()}<//>`}
    ${Tool && html`<${Dialog} title=${title} close=${close}><${Tool} /><//>`}
  </div>`;
}

function PayInvoice({ id }) {
  const { data: invoice, error, again } = useGet(at`/invoices/${id}`);
  if (error) return html`<${Failure} error=${error} again=${again} />`;
  if (!invoice) return html`<${Loading} />`;
  if (!invoice.address) {
    return html`<${ChooseForm} invoice=${invoice} done=${again} />`;
  }
  const missing = invoice.missing && !isZero(invoice.missing) ? invoice.missing : invoice.amount;
  return html`<${PayForm} lock to=${{ address: invoice.address, network: invoice.network, coin: invoice.currency,
    amount: missing }} />`;
}

/** The payer's choice, where the invoice leaves it open: what the checkout page asks for first. */
function ChooseForm({ invoice, done }) {
  const choices = (invoice.accept ?? []).map(({ coin, network }) => [coinKey(coin, network), coinName(coin, network)]);
  const fields = [{ name: "coin", label: "Coin", kind: "select", required: true, options: choices, value: choices[0]?.[0] }];
  const submit = ({ coin }) => post(at`/pay/${invoice.id}/choice`, coinOf(coin));
  return html`<p>Its payer chooses a coin first, as on the <${Out} href=${invoice.checkoutUrl}>checkout page<//>.</p>
    <${Form} fields=${fields} action="Choose this coin" submit=${submit} done=${() => { done(); lookSoon(); }} />`;
}

function PayAddress({ id }) {
  const { data: address, error, again } = useGet(at`/addresses/${id}`);
  if (error) return html`<${Failure} error=${error} again=${again} />`;
  if (!address) return html`<${Loading} />`;
  return html`<${PayForm} lock to=${{ address: address.address, network: address.network, coin: address.coin }} />`;
}
