// What the statuses, events and rules of invoices mean, in plain words.
import { isZero, words } from "../app/format.js";

export const STATUSES = ["pending", "partial", "confirming", "completed", "expired", "cancelled"];

/** What a status means for the merchant, and what to do. */
const MEANING = {
  pending: "Nobody has paid yet. Send the payer to the checkout.",
  partial: "A part is paid. The checkout asks the payer for the rest.",
  confirming: "Enough is paid, and the network is confirming it. Wait before you deliver.",
  completed: "It is paid. You can deliver.",
  expired: "Its time is over before enough was paid.",
  cancelled: "It was cancelled. What is paid now is credited to you, and completes nothing.",
};

const BY_HAND = "This status was set by hand: nothing changes it by itself.";

/** What an invoice's status means. One that is completed and has no money was completed by hand. */
export function meaning(invoice) {
  const unpaid = isZero(invoice.received ?? "0") && isZero(invoice.unconfirmed ?? "0") && !Number(invoice.paidPercent ?? 0);
  if (invoice.status === "completed" && unpaid) return `${BY_HAND} Nothing is credited for it.`;
  return MEANING[invoice.status] ?? BY_HAND;
}

const EVENTS = {
  "invoice.created": "Invoice made",
  "invoice.partial": "A part was paid",
  "invoice.confirming": "Enough is paid, the network is confirming it",
  "invoice.completed": "Completed",
  "invoice.expired": "Expired",
  "invoice.cancelled": "Cancelled",
  "invoice.late_payment": "A payment came late",
  "invoice.reverted": "A payment fell out of the chain: the status went back",
};

export const eventWords = (name) => EVENTS[name] ?? words(String(name).replaceAll(".", " "));

export const LATE = [
  ["manual", "I decide by hand: the invoice stays expired"],
  ["accept", "They count like the rest"],
  ["acceptWithinPercent", "They complete the invoice if their worth covers the rest, less some percent"],
];

/** Fields of a form that say what is forgiven to payers. `terms` are those of now. */
export function termFields(terms = {}, when) {
  const shown = (also) => (values) => (!when || when(values)) && (!also || also(values));
  return [
    {
      name: "tolerancePercent", label: "Forgiven shortfall in percent", kind: "amount",
      value: terms.tolerancePercent, example: "1",
      hint: "0 to 10. An invoice that is paid up to so little less is completed.", when: shown(),
    },
    {
      name: "toleranceMaxUSD", label: "And no more than so many US dollars", kind: "amount",
      value: terms.toleranceMaxUSD, example: "0.50",
      hint: "Empty: no such bound.", when: shown(),
    },
    { name: "latePayments", label: "Payments that come late", kind: "select", options: LATE, empty: "As the settings say",
      value: terms.latePayments, when: shown() },
    {
      name: "latePaymentsPercent", label: "Less so many percent", kind: "amount",
      value: terms.latePaymentsPercent, example: "2",
      hint: "0 to 50 percent of the rest.", when: shown((values) => values.latePayments === "acceptWithinPercent"),
    },
  ];
}
