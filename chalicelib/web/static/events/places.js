// Which page of ours an event is about.
import { at } from "../app/api.js";

const PAGES = [
  ["inv_", (id) => at`/invoices/${id}`], ["wd_", (id) => at`/withdrawals/${id}`], ["tx", (id) => at`/transactions/${id}`],
  ["ref_", (id) => at`/refunds/${id}`], ["pol_", (id) => at`/claim-links/${id}`], ["wh_", (id) => at`/webhooks/${id}`],
];

/** The page of the object that an event is about; null where it has none. */
export function placeOf(event) {
  const id = event?.data?.id ?? event?.data?.webhookId;
  if (typeof id !== "string") return event?.event === "balance.updated" ? "/balances" : null;
  return PAGES.find(([prefix]) => id.startsWith(prefix))?.[1](id) ?? null;
}

/** What an event is about, in short: its object's id, or coin and network. */
export function nameOf(event) {
  const { data } = event;
  return data?.externalId ?? data?.id ?? data?.webhookId ?? [data?.coin, data?.network].filter(Boolean).join(" on ");
}
