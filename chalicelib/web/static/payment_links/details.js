// One payment link: its page, its price and stock; changed and deleted here.
import { at, del, put } from "../app/api.js";
import { Ask, useDialog } from "../app/dialog.js";
import { Form } from "../app/form.js";
import { amount, countOf } from "../app/format.js";
import { Button, Card, Code, Copy, Facts, Failure, Loading, Notice, Out, Page, Status, Time } from "../app/parts.js";
import { Link, go } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html, useState } from "../app/ui.js";
import { coinName } from "../catalogue/coin_names.js";
import { useCoins } from "../catalogue/coins.js";
import { changedLink, linkFields } from "./fields.js";
import { linkPrice } from "./list.js";

const STATES = {
  active: ["good", "Visitors can pay", "Send the link, or put it on your site."],
  sold_out: ["warn", "Nothing is left", "Change the number of pieces to let visitors pay again."],
  expired: ["bad", "Its time is over", "Change the time to let visitors pay again."],
};

/** The page of a payment link. */
export default function PaymentLink({ params, query }) {
  const path = at`/payment-links/${params.id}`;
  const { data: link, error, loading, again, put: show } = useGet(path, {}, { every: 30 });
  const [changing, change] = useState(false);
  const [asked, ask, close] = useDialog();
  const may = link && can("invoices:write") && !changing;
  const actions = may && html`<${Button} tone="quiet" onClick=${() => change(true)}>Change<//>
    <${Button} tone="quiet" onClick=${() => ask()}>Delete<//>`;
  return html`<${Page} title=${link?.name ?? "Payment link"} actions=${actions}>
    <p class="fine"><${Link} to="/payment-links">All payment links<//></p>
    <${Failure} error=${error} again=${again} />
    ${loading && !link && html`<${Loading} />`}
    ${link && query.made && !changing && html`<${Notice} tone="good" title="The payment link is made">Copy the link below.<//>`}
    ${link && (changing
      ? html`<${Change} link=${link} path=${path} done=${(changed) => { change(false); show(changed); }}
        cancel=${() => change(false)} />`
      : html`<${Details} link=${link} />`)}
    ${asked && html`<${Ask} title="Delete the payment link" action="Delete" tone="danger"
      run=${async () => (await del(path)).data}
      words="Its page is gone from now on. Invoices that were opened from it stay, and can be paid."
      close=${(gone) => { close(); if (gone) go("/payment-links"); }} />`}
  <//>`;
}

function Details({ link }) {
  const [tone, title, text] = STATES[link.status] ?? ["calm", link.status, ""];
  return html`<${Notice} tone=${tone} title=${title}>${text}<//>
    <div class="columns"><${Card} title="Page">
      <p class="big">${linkPrice(link)}</p>
      <${Facts} rows=${[
        ["Link", html`<${Out} href=${link.url}>Open the page<//> <${Copy} value=${link.url} label="Copy link"
          what="payment link" />`],
        ["Status", html`<${Status} value=${link.status} />`],
        ["Left", link.stock === undefined ? "Any number" : countOf(link.stock, "piece")],
        ["Paid in", paidIn(link)],
        ["Can be opened until", link.expiresAt ? html`<${Time} at=${link.expiresAt} />` : "For ever"],
      ]} /><//>
    <${Card} title="More"><${Facts} rows=${[
      ["Description", link.description],
      ["After paying", link.redirectUrl && html`<${Out} href=${link.redirectUrl} />`],
      ["Made", html`<${Time} at=${link.createdAt} />`],
      ["Changed", html`<${Time} at=${link.updatedAt} />`],
      ["Id", html`<${Code} value=${link.id} what="payment link id" />`],
    ]} />
    ${link.metadata && html`<h3>Metadata</h3>
      <pre class="json" tabindex="0">${JSON.stringify(link.metadata, null, 2)}</pre>`}<//></div>`;
}

function paidIn(link) {
  if (link.currency) return coinName(link.currency, link.network);
  if (!link.accept) return "Any coin that your settings allow";
  return link.accept.length > 4
    ? `${amount(link.accept.length)} coins to choose from`
    : link.accept.map((each) => coinName(each.coin, each.network)).join(", ");
}

function Change({ link, path, done, cancel }) {
  const coins = useCoins();
  if (!coins.ready && !coins.error) return html`<${Loading} />`;
  return html`<${Card} title="Change"><p class="soft">Invoices that are open stay as they are.</p>
    <${Form} fields=${linkFields(coins, link)} action="Save" cancel=${cancel} done=${done} submit=${async (values) => {
      const body = changedLink(link, values);
      return Object.keys(body).length === 0 ? link : (await put(path, body)).data;
    }} /><//>`;
}
