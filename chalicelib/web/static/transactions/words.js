// Transactions in plain words: what a flag means for the merchant, and how far a transaction is.
import { words } from "../app/format.js";

export const TYPES = { deposit: "Payment in", withdrawal: "Withdrawal", collection: "Collection", topup: "Top-up",
  stake: "Stake" };

/** [tone, name, what it means and what to do]. */
export const FLAGS = {
  grey_listed: ["warn", "From a listed sender", "It came from an address on the operator's grey list."],
  held: ["warn", "Held",
    "It is yours and can not be used until the operator releases it. Write to the operator with the transaction's id."],
  native_twin: ["warn", "Told twice",
    "It brought the same amount of two coins, perhaps one payment under two names. The operator looks at it."],
  below_minimum: ["warn", "Below the minimum",
    "It is less than the coin's least deposit: it is recorded, and not credited. The operator can release it."],
  set_aside: ["bad", "Set aside",
    "With it, more was received than there can be. It is in no balance. Write to the operator if it is real."],
  replaceable: ["calm", "May be replaced",
    "Another transaction may take its place until it is in a block. Deliver nothing before it is confirmed."],
  unpriced: ["calm", "Waits for a rate",
    "It pays an invoice whose payer chose the coin. It counts there as soon as there is a fresh rate."],
};

/** `[tone, name, what it means]` of a flag; its own name where there are no words. */
export const flagOf = (flag) => FLAGS[flag] ?? ["warn", words(flag), ""];

/** How far it is: `{ tone, label, why }`. */
export function standing(transaction) {
  const { status, confirmations, requiredConfirmations: needed, blockNumber } = transaction;
  if (status === "orphaned") return { tone: "bad", label: "Fell out",
    why: "A reorganisation took it out of the chain. If it comes back, it counts again." };
  if (status === "failed") return { tone: "bad", label: "Failed", why: "The chain took it, and it did not do what it should." };
  if (status === "confirmed") return { tone: "good", label: "Confirmed", why: null };
  if (blockNumber === null) return { tone: "busy", label: "In no block yet",
    why: "It was seen waiting. It may take a while, and it may still be replaced." };
  return { tone: "busy", label: `${confirmations} of ${needed}`,
    why: `It is in a block with ${confirmations} of ${needed} confirmations, and counts with the last one.` };
}
