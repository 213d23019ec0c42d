// What happened to an invoice and when, out of its events; a key that may not see events gets what the invoice itself says.
import { Empty, Failure, Loading, Notice, Status, Time } from "../app/parts.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { eventWords } from "./words.js";

/** What happened, newest first: of the events, and of the moments that the record itself has. */
export function moments(invoice, events, now) {
  const told = events.map((event) => ({ at: event.timestamp, text: eventWords(event.event), status: event.data?.status, id: event.id }));
  if (!events.some((event) => event.event === "invoice.created")) told.push({ at: invoice.createdAt, text: eventWords("invoice.created"), id: "made" });
  const open = ["pending", "partial"].includes(invoice.status);
  if (open && Date.parse(invoice.expiresAt) > now) told.push({ at: invoice.expiresAt, text: "Expires, if it is not paid by then", id: "expires" });
  return told.sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
}

export function Timeline({ invoice }) {
  const may = can("events:read");
  const { data, error, loading, again } = useGet(may ? "/events" : null, { objectId: invoice.id, limit: 100 }, { every: 15 });
  const told = moments(invoice, data ?? [], Date.now());
  return html`<${Failure} error=${error} again=${again} />
    ${loading && may && data === null && html`<${Loading} />`}
    ${!may && html`<${Notice}>This key may not see events: only what the invoice itself says is here.<//>`}
    ${told.length === 0 ? html`<${Empty} />` : html`<ol class="timeline">${told.map((each) => html`<li key=${each.id}>
      <span class="soft"><${Time} at=${each.at} /></span> <span>${each.text}</span>${each.status && html` <${Status} value=${each.status} />`}</li>`)}</ol>`}
    ${may && html`<p class="fine">Events are kept for 30 days.</p>`}`;
}
