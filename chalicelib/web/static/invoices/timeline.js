// What happened to an invoice and when: out of its events, its payments and its refunds, as far as the key may see them.
import { at } from "../app/api.js";
import { amount } from "../app/format.js";
import { Empty, Failure, Loading, Notice, Status, Time } from "../app/parts.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { eventWords } from "./words.js";

/** The events of the invoice, and the beginning and the end that its record has. */
function ofInvoice(invoice, events, now) {
  const told = events.map((event) =>
    ({ at: event.timestamp, text: eventWords(event.event), status: event.data?.status, id: event.id }));
  if (!events.some((event) => event.event === "invoice.created"))
    told.push({ at: invoice.createdAt, text: eventWords("invoice.created"), id: "made" });
  const open = ["pending", "partial"].includes(invoice.status);
  if (open && Date.parse(invoice.expiresAt) > now)
    told.push({ at: invoice.expiresAt, text: "Expires, if it is not paid by then", id: "expires" });
  return told;
}

const sum = (record) => `${amount(record.amount)} ${String(record.symbol ?? record.coin).toUpperCase()}`;

/** A payment when it was seen, and when it was credited. */
const ofPayment = (payment) => [
  { at: payment.createdAt, text: `Payment of ${sum(payment)} seen`, id: `${payment.id}:seen` },
  payment.confirmedAt && { at: payment.confirmedAt, text: `Payment of ${sum(payment)} confirmed`,
    id: `${payment.id}:confirmed` },
].filter(Boolean);

const ofRefund = (refund) =>
  ({ at: refund.createdAt, text: `Refund of ${sum(refund)} made`, status: refund.status, id: refund.id });

/** What happened, newest first. */
export function moments(invoice, { events = [], payments = [], refunds = [] }, now) {
  const told = [...ofInvoice(invoice, events, now), ...payments.flatMap(ofPayment), ...refunds.map(ofRefund)];
  return told.sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
}

export function Timeline({ invoice }) {
  const may = can("events:read");
  const found = useGet(may ? "/events" : null, { objectId: invoice.id, limit: 100 }, { every: 15 });
  const payments = useGet(can("transactions:read") ? "/transactions" : null, { invoiceId: invoice.id, limit: 100 });
  const refunds = useGet(can("withdrawals:read") ? at`/invoices/${invoice.id}/refunds` : null);
  const told = moments(invoice,
    { events: found.data ?? [], payments: payments.data ?? [], refunds: refunds.data ?? [] }, Date.now());
  const failed = [found, payments, refunds].find((each) => each.error);
  return html`<${Failure} error=${failed?.error} again=${failed?.again} />
    ${[found, payments, refunds].some((each) => each.loading && each.data === null && !each.error) && html`<${Loading} />`}
    ${!may && html`<${Notice}>This key may not see events: only what the records say is here.<//>`}
    ${told.length === 0 ? html`<${Empty} />` : html`<ol class="timeline">${told.map((each) => html`<li key=${each.id}>
      <span class="soft"><${Time} at=${each.at} /></span> <span>${each.text}</span>
      ${each.status && html` <${Status} value=${each.status} />`}</li>`)}</ol>`}
    ${may && html`<p class="fine">Events are kept for 30 days.</p>`}`;
}
