// What a pasted text may be, and where the API would know it: every form is tried that it fits.
import { at } from "./api.js";

/**
 * Prefix of an id, what it names, the permission, where to ask with what, and our page. Lists answer with no rows where nothing
 * is.
 */
const IDS = [
  ["inv", "Invoice", "invoices:read", (id) => ["/invoices/getAll", { id }], (id) => at`/invoices/${id}`],
  ["wd", "Withdrawal", "withdrawals:read", (id) => ["/withdrawals", { id }], (id) => at`/withdrawals/${id}`],
  ["ref", "Refund", "withdrawals:read", (id) => [at`/refunds/${id}`], (id) => at`/refunds/${id}`],
  ["plk", "Payment link", "invoices:read", (id) => ["/payment-links", { id }], (id) => at`/payment-links/${id}`],
  ["pol", "Claim link", "withdrawals:read", (id) => ["/payout-links", { id }], (id) => at`/claim-links/${id}`],
  ["evt", "Event", "events:read", (id) => [at`/events/${id}`], (id) => at`/events/${id}`],
  ["dlv", "Webhook delivery", "webhooks:read", (id) => [at`/webhooks/deliveries/${id}`], (id) => at`/deliveries/${id}`],
  ["wh", "Webhook", "webhooks:read", (id) => [at`/webhooks/${id}`], (id) => at`/webhooks/${id}`],
  ["key", "API key", "keys:read", (id) => ["/api-keys", { key_id: id }], (id) => at`/settings/keys/${id}`],
  ["addr", "Address", "addresses:read", (id) => ["/addresses", { id }], (id) => at`/addresses/${id}`],
  ["tx", "Transaction", "transactions:read", (id) => ["/transactions", { id }], (id) => at`/transactions/${id}`],
];
const ID = /^([a-z]{2,6})_[0-9a-z]{20,40}$/;
const HASH = /^(0x)?[0-9a-fA-F]{64}$/;
/** Addresses of all families, loosely: the API knows them exactly. */
const ADDRESS = /^(0x[0-9a-fA-F]{40}|[13LMmn2T][1-9A-HJ-NP-Za-km-z]{25,34}|(bc|tb|bcrt|ltc|tltc|rltc)1[0-9a-z]{20,80})$/i;

/**
 * The path of the page of the object with this id; null for a text that is no id, or of a kind without a page. `may` says
 * whether a permission is held.
 */
export function pageOf(id, may) {
  const [, prefix] = ID.exec(id) ?? [];
  const found = IDS.find(([known, , needs]) => isOf(known, prefix) && may(needs));
  return found ? found[4](id) : null;
}

/** Whether an id's prefix is of that kind: transactions have one for each of their kinds. */
const isOf = (kind, prefix) => prefix === kind || (kind === "tx" && /^tx[a-z]$/.test(prefix));

const row = (what, needs, path, query, to, by = "value") => ({ what, needs, path, query, to, by });

/**
 * Questions to the API for a text: `{ what, needs, path, query, to(found), by }`, where `to` is our page of what is found, and
 * `by` "id" says that the text's own form told what it is.
 */
export function lookups(pasted) {
  const text = pasted.trim();
  if (!text) return [];
  const wanted = [];
  const id = ID.exec(text);
  for (const [prefix, what, needs, ask, page] of id ? IDS : []) {
    const fits = isOf(prefix, id[1]);
    const [path, query = {}] = fits ? ask(text) : [];
    if (fits) wanted.push(row(what, needs, path, query, (found) => page(found.id ?? found.key_id ?? text), "id"));
  }
  if (HASH.test(text)) {
    wanted.push(row("Transaction by its hash", "transactions:read", "/transactions", { hash: text, limit: 20 },
      (found) => at`/transactions/${found.id}`));
    wanted.push(row("Withdrawal by its transaction", "withdrawals:read", "/withdrawals", { transaction_hash: text, limit: 20 },
      (found) => at`/withdrawals/${found.id}`));
  }
  if (ADDRESS.test(text)) {
    wanted.push(row("Your address", "addresses:read", "/addresses", { address: text }, (found) => at`/addresses/${found.id}`));
    wanted.push(row("Withdrawals to this address", "withdrawals:read", "/withdrawals", { to_address: text, limit: 20 },
      (found) => at`/withdrawals/${found.id}`));
    wanted.push(row("Payments to this address", "transactions:read", at`/transactions/address/${text}`, { limit: 20 },
      (found) => at`/transactions/${found.id}`));
    wanted.push(row("Whitelist", "whitelist:read", "/whitelist/addresses", { address: text, limit: 20 }, () => "/whitelist"));
  }
  // An external id may look like anything, so it is tried always.
  wanted.push(row("Invoice by its external id", "invoices:read", "/invoices/getAll", { externalId: text },
    (found) => at`/invoices/${found.id}`));
  return wanted;
}
