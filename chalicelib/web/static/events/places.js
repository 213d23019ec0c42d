// Which page of ours an event is about.
import { pageOf } from "../app/lookups.js";

/** The page of the object that an event is about; null where it has none. `may` says whether a permission is held. */
export function placeOf(event, may) {
  const id = event?.data?.id ?? event?.data?.webhookId;
  if (typeof id !== "string") return event?.event === "balance.updated" && may("balances:read") ? "/balances" : null;
  return pageOf(id, may);
}

/** What an event is about, in short: its object's id, or coin and network. */
export function nameOf(event) {
  const { data } = event;
  return data?.externalId ?? data?.id ?? data?.webhookId ?? [data?.coin, data?.network].filter(Boolean).join(" on ");
}
