// Webhook events in plain words, and how an endpoint or a delivery stands.

import { countOf } from "../app/format.js";

/** [the API's name, plain words], by what they are about. */
export const EVENTS = {
  Invoices: [
    ["invoice.created", "Made"], ["invoice.partial", "Part paid"], ["invoice.confirming", "Paid, waiting for confirmations"],
    ["invoice.completed", "Paid and confirmed"], ["invoice.expired", "Expired"], ["invoice.late_payment", "Paid late"],
    ["invoice.reverted", "A payment fell out of the chain"], ["invoice.cancelled", "Cancelled"],
  ],
  Transactions: [
    ["transaction.detected", "Seen"], ["transaction.confirmed", "Confirmed"], ["transaction.orphaned", "Fell out of the chain"],
  ],
  Balances: [["balance.updated", "Changed"]],
  Withdrawals: [
    ["withdrawal.created", "Asked for"], ["withdrawal.status_changed", "Each step"], ["withdrawal.completed", "Confirmed"],
  ],
  Refunds: [
    ["refund.created", "Made"], ["refund.claimed", "Claimed"], ["refund.completed", "Paid"], ["refund.failed", "Failed"],
    ["refund.expired", "Expired"], ["refund.cancelled", "Cancelled"],
  ],
  "Claim links": [
    ["payout_link.created", "Made"], ["payout_link.claimed", "Claimed"], ["payout_link.completed", "Paid"],
    ["payout_link.failed", "Failed"], ["payout_link.expired", "Expired"], ["payout_link.cancelled", "Cancelled"],
  ],
  "Your other webhooks": [["webhook.failing", "Fails"], ["webhook.disabled", "Was turned off"]],
};

/** Every name that can be subscribed to. */
export const NAMES = Object.values(EVENTS).flat().map(([name]) => name);

const WORDS = new Map(
  Object.entries(EVENTS).flatMap(([about, events]) => events.map(([name, words]) =>
    [name, `${about}: ${words.toLowerCase()}`])),
);

/** An event in plain words: "Invoices: paid late"; its own name where there are none. */
export const eventWords = (name) => (name === "webhook.test" ? "Test" : WORDS.get(name) ?? name);

/** Options of a filter by event. */
export const eventOptions = () => [...NAMES, "webhook.test"].map((name) => [name, name]);

/**
 * How an endpoint does: `{ tone, label, why }`, where `why` says what to do, or null.
 * `now` in milliseconds since 1970.
 */
export function health(webhook, now = Date.now()) {
  if (webhook.status === "disabled") {
    const why = webhook.disabledReason ? `It was turned off: ${webhook.disabledReason}.` : "It is turned off.";
    return { tone: "bad", label: "Off",
      why: `${why} Nothing is kept for it. Mend the receiver, turn it on, and send again what it missed.` };
  }
  if (webhook.status === "paused") {
    return { tone: "warn", label: "Paused", why: "What it is to be told is kept, and sent when it goes on." };
  }
  if (webhook.failingSince) {
    return { tone: "bad", label: "Failing",
      why: "Nothing was answered with success since then. Look at its deliveries. After five days it is turned off." };
  }
  if (webhook.failures) {
    return { tone: "warn", label: "Failing", why: `${countOf(webhook.failures,
      "attempt")} failed since the last success. Each event is sent again by itself: look at the deliveries.` };
  }
  if (webhook.restsUntil && new Date(webhook.restsUntil).getTime() > now) {
    return { tone: "busy", label: "Resting", why: "It asked to be left alone for a while, and is told then." };
  }
  return { tone: "good", label: "Active", why: null };
}

/** How a delivery stands: `{ tone, label, why }`. */
export function standing(delivery) {
  if (delivery.status === "delivered") return { tone: "good", label: "Delivered", why: null };
  if (delivery.status === "dead") return { tone: "bad", label: "Given up",
    why: `${sentence(delivery.reason)} Mend the receiver, then send it again.` };
  if (delivery.status === "cancelled") return { tone: "warn", label: "Cancelled", why: sentence(delivery.reason) };
  if (delivery.held) return { tone: "warn", label: "Held", why: "Its webhook is paused: it is sent when that goes on." };
  if (delivery.waitsForEarlier) return { tone: "busy", label: "Waits its turn",
    why: "An earlier event of the same object is not answered yet." };
  if (delivery.attempts.length > 0) return { tone: "warn", label: "Retrying",
    why: "The last attempt failed. It is sent again by itself; send it now once the receiver is well." };
  return { tone: "busy", label: "Waiting", why: "It is about to be sent." };
}

function sentence(text) {
  if (!text) return "";
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** What came of one attempt, in words. */
export function outcome(attempt) {
  if (attempt.responseStatus === undefined || attempt.responseStatus === null) return attempt.error ?? "No answer came";
  const good = attempt.responseStatus >= 200 && attempt.responseStatus < 300 && !attempt.error;
  return good ? `Answered ${attempt.responseStatus}` : `Answered ${attempt.responseStatus}${attempt.error
    ? `: ${attempt.error}` : ""}`;
}

/** Whether an attempt succeeded. */
export const succeeded = (attempt) => attempt.responseStatus >= 200 && attempt.responseStatus < 300 && !attempt.error;
