// One invoice: how it stands, what was paid, what happened when, what can be done.
import { at } from "../app/api.js";
import { Card, Code, Copy, Facts, Failure, Loading, Notice, Out, Page, Progress, Status, Tabs, Time,
  Amount } from "../app/parts.js";
import { compare, fiat, isZero, shorten } from "../app/format.js";
import { Link, go } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { coinName } from "../catalogue/coin_names.js";
import { InvoiceActions } from "./actions.js";
import { Payments } from "./payments.js";
import { Timeline } from "./timeline.js";
import { InvoiceRefunds } from "./refunds.js";
import { meaning } from "./words.js";

const MOVING = ["pending", "partial", "confirming", "expired"];
const TONES = { pending: "calm", partial: "warn", confirming: "busy", completed: "good", expired: "bad", cancelled: "bad" };

/** The page of an invoice. */
export default function Invoice({ params, query }) {
  const path = at`/invoices/${params.id}`;
  const shown = useGet(path, {}, { every: 15 });
  const { data: invoice, error, loading, again, put } = shown;
  const title = invoice?.externalId ?? `Invoice ${shorten(params.id, 4)}`;
  const tabs = [["payments", "Payments"], ["timeline", "Timeline"]];
  if (can("withdrawals:read")) tabs.push(["refunds", "Refunds"]);
  tabs.push(["more", "More"]);
  const tab = tabs.some(([name]) => name === query.tab) ? query.tab : "payments";
  return html`<${Page} title=${title} actions=${invoice && html`<${InvoiceActions} invoice=${invoice} changed=${put} />`}>
    <p class="fine"><${Link} to="/invoices">All invoices<//></p>
    <${Failure} error=${error} again=${again} />
    ${loading && !invoice && html`<${Loading} />`}
    ${invoice && html`
      <${State} invoice=${invoice} />
      <div class="columns"><${Price} invoice=${invoice} /><${Checkout} invoice=${invoice} /></div>
      <${Tabs} label="About this invoice" tabs=${tabs} chosen=${tab}
        choose=${(name) => go(path, { tab: name }, { replace: true })}>
        ${tab === "payments" && html`<${Payments} invoice=${invoice} moving=${MOVING.includes(invoice.status)} />`}
        ${tab === "timeline" && html`<${Timeline} invoice=${invoice} />`}
        ${tab === "refunds" && html`<${InvoiceRefunds} invoice=${invoice} />`}
        ${tab === "more" && html`<${More} invoice=${invoice} />`}
      <//>`}
  <//>`;
}

function State({ invoice }) {
  const late = invoice.status === "expired" && !isZero(invoice.received ?? "0");
  return html`<${Notice} tone=${TONES[invoice.status] ?? "calm"}
    title=${html`<${Status} value=${invoice.status} tone=${TONES[invoice.status]} />`}>
    ${meaning(invoice)}
    ${late && html`<p>Money came all the same: it is credited to you. Refund it, or set the status by hand.</p>`}
    ${invoice.overpaid
      && html`<p>More than asked for was paid: <${Amount} value=${invoice.overpaid} symbol=${invoice.symbol} />. You
        can refund it.</p>`}
    ${invoice.misdirected && html`<p>Something was paid in a coin that does not count here: see the payments.</p>`}
  <//>`;
}

/** How much of the price is credited, in whole percent, rounded down. A display alone: nothing is decided by it. */
function paidPart(invoice) {
  if (invoice.paidPercent !== undefined) return Math.min(100, Math.floor(Number(invoice.paidPercent)));
  if (!invoice.amount || isZero(invoice.amount)) return 0;
  if (compare(invoice.received, invoice.amount) >= 0) return 100;
  return Math.floor((Number(invoice.received) / Number(invoice.amount)) * 100);
}

function Price({ invoice }) {
  const coin = (value) => (value === null || value === undefined
    ? null : html`<${Amount} value=${value} symbol=${invoice.symbol} />`);
  const part = paidPart(invoice);
  return html`<${Card} title="Price">
    <p class="big">${invoice.fiatAmount ? fiat(invoice.fiatAmount, invoice.fiatCurrency) : coin(invoice.amount)}</p>
    ${invoice.description && html`<p dir="auto">${invoice.description}</p>`}
    <${Progress} value=${part} max=${100} label="Credited part of the price">${invoice.paidPercent ?? part} % credited<//>
    <${Facts} rows=${[
      invoice.fiatAmount && ["In coin units", coin(invoice.amount) ?? "The payer has not chosen a coin yet"],
      ...(invoice.choices ? received(invoice.choices) : [["Received", coin(invoice.received)]]),
      !isZero(invoice.unconfirmed) && ["Seen, not credited yet", coin(invoice.unconfirmed)],
      invoice.missing && !isZero(invoice.missing) && ["Missing", coin(invoice.missing)],
      ["Overpaid", coin(invoice.overpaid)],
      ["Forgiven shortfall", coin(invoice.shortfall)],
      invoice.rate
        && ["Rate", `${fiat(invoice.rate.value, invoice.rate.fiat)} for one ${invoice.symbol
          ?? "coin"} (${invoice.rate.source})`],
    ]} /><//>`;
}

/** What came in each coin, where the payer chooses. */
const received = (choices) => choices.filter((each) => !isZero(each.received)).map((each) => [
  `Received on ${each.network}`, html`<${Amount} value=${each.received} symbol=${each.coin} />`,
]);

function Checkout({ invoice }) {
  const place = invoice.network && coinName(invoice.symbol ?? invoice.currency, invoice.network);
  return html`<${Card} title="Checkout">
    <${Facts} rows=${[
      ["Link", invoice.checkoutUrl
        && html`<${Out} href=${invoice.checkoutUrl}>Open the page<//> <${Copy} value=${invoice.checkoutUrl} label="Copy link"
        what="checkout link" />`],
      ["Paid in", place ?? "The payer chooses"],
      ["Address", invoice.address && html`<${Code} value=${invoice.address} what="address" />`],
      ["Made", html`<${Time} at=${invoice.createdAt} />`],
      [invoice.status === "expired" ? "Expired" : "Expires", html`<${Time} at=${invoice.expiresAt} />`],
      ["Id", html`<${Code} value=${invoice.id} what="invoice id" />`],
      ["Payment link", invoice.paymentLinkId
        && html`<${Link} to=${at`/payment-links/${invoice.paymentLinkId}`}>
          <code>${shorten(invoice.paymentLinkId, 4)}</code><//>`],
    ]} /><//>`;
}

const LATE = { manual: "Stay with you to decide", accept: "Count like the rest",
  acceptWithinPercent: "Complete it if their worth covers the rest" };

function More({ invoice }) {
  const choices = invoice.choices ?? [];
  return html`
    ${invoice.accept && html`<${Card} title="Coins that the payer may choose">
      <p>${invoice.accept.map((each) => coinName(each.coin, each.network)).join(", ")}</p>
      ${choices.map((each) => html`<h3>${coinName(each.coin, each.network)}</h3><${Facts} rows=${[
        ["Address", html`<${Code} value=${each.address} what="address" />`],
        ["Whole price", each.amount && html`<${Amount} value=${each.amount} symbol=${each.coin} />`],
        ["Received", html`<${Amount} value=${each.received} symbol=${each.coin} />`],
        !isZero(each.unconfirmed)
          && ["Seen, not credited yet", html`<${Amount} value=${each.unconfirmed} symbol=${each.coin} />`],
        each.rate && ["Rate", `${fiat(each.rate.value, each.rate.fiat)} (${each.rate.source})`],
        each.lockedUntil && ["Rate locked until", html`<${Time} at=${each.lockedUntil} />`],
      ]} />`)}<//>`}
    <${Card} title="Rules and links"><${Facts} rows=${[
      invoice.tolerancePercent !== undefined
        && ["Forgiven shortfall",
          `${invoice.tolerancePercent} %${invoice.toleranceMaxUSD ? `, at most $${invoice.toleranceMaxUSD}` : ""}`],
      ["Late payments", LATE[invoice.latePayments]],
      ["After paying", invoice.redirectUrl && html`<${Out} href=${invoice.redirectUrl} />`],
      ["Without paying", invoice.cancelUrl && html`<${Out} href=${invoice.cancelUrl} />`],
      ["Its own webhook", invoice.webhookUrl && html`<code>${invoice.webhookUrl}</code>`],
      ["Payment request", invoice.paymentUri && html`<${Code} value=${invoice.paymentUri} what="payment request" />`],
      ["Price fixed in", invoice.fiatCurrency ?? invoice.symbol],
    ]} /><//>
    <${Card} title="Metadata">${invoice.metadata
      ? html`<pre class="json" tabindex="0">${JSON.stringify(invoice.metadata, null, 2)}</pre>`
      : html`<p class="soft">None was sent with it.</p>`}<//>`;
}
