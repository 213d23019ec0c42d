// What withdrawals, refunds and claim links say for people: why one waits, what was found about it, and what to do.
import { words } from "../app/format.js";

const FINDINGS = {
  new_address: "the address is new: first paid less than a day ago, and not on the whitelist for an hour yet",
  unusual_amount: "the amount is larger than every one before, and many times the usual one",
  velocity: "there were many payments to new addresses within a short time",
  look_alike: "the address begins and ends like another one that was paid or is on the whitelist: compare it letter by letter",
  contract: "the address is a contract that was never paid before",
  own_address: "the address is a deposit address of your own",
  repeated_failures: "payments to this address failed on the chain before",
};

/** What risk rules found, as sentences. */
export const findings = (risk) => (risk?.findings ?? []).map(({ name }) => FINDINGS[name] ?? words(name));

/** What a pending withdrawal waits for: `{ tone, title, words, toDo }`; null where it waits for nothing but its turn. */
export function waitsFor(record) {
  if (record.status !== "pending" || !record.pending_reason) return null;
  return (REASONS[record.pending_reason] ?? unknown)(record);
}

const REASONS = {
  approval,
  liquidity: (record) => ({
    tone: "busy", title: "Waits for money in the hot wallet",
    words: `The wallet that pays on ${record.network} has too little now. It goes on once the operator has filled it.`,
    toDo: "Nothing. You can cancel it as long as it waits.",
  }),
  risk: (record) => ({
    tone: "warn", title: "The operator looks at it first",
    words: record.risk
      ? `Found right before it was paid: ${findings(record.risk).join("; ")}.`
      : "Your balance of this coin is negative: a payment to you fell out of the chain. It goes on once that is made good.",
    toDo: "Compare the address and the amount. Cancel it if either is wrong; else tell the operator that it is right.",
  }),
  halted: () => ({
    tone: "warn", title: "Payments are stopped",
    words: "The operator has stopped all outgoing payments. It goes on by itself when they go on.",
    toDo: "Nothing. You can cancel it as long as it waits.",
  }),
  fees: (record) => ({
    tone: "busy", title: "Waits for a lower network fee",
    words: `The fee on ${record.network} is too high for it, or today's fees of your account are used up. `
      + "It goes on by itself; after 24 hours with too high a fee it fails, and the money is available again.",
    toDo: "Wait, or ask the operator to let it go on all the same.",
  }),
  suspended: () => ({
    tone: "warn", title: "Your account is suspended",
    words: "The operator has suspended this merchant: nothing is paid out. It goes on by itself once that ends.",
    toDo: "Ask the operator why.",
  }),
};

const GREY = " The operator has to agree as well: the address is on the grey list.";

function approval(record) {
  const { reasons = [], signatures = [], required_signatures: needed = 0, operator_accepted: accepted } = record.approval ?? {};
  const signed = reasons.includes("multisig");
  const left = Math.max(0, needed - signatures.length);
  const asks = reasons.includes("grey_list") && !accepted;
  if (signed && left > 0) {
    return {
      tone: "warn", title: `Waits for ${left === 1 ? "one more signature" : `${left} more signatures`}`,
      words: `${signatures.length} of ${needed} signatures are there.${asks ? GREY : ""}`,
      toDo: "A signer compares the address and the amount and signs below.",
    };
  }
  return {
    tone: "warn", title: "Waits for the operator",
    words: "The address is on the operator's grey list: payments to it need the operator's word.",
    toDo: "Tell the operator why it is right, or cancel it.",
  };
}

const unknown = (record) => ({
  tone: "warn", title: `Waits: ${words(record.pending_reason)}`, words: "It goes on by itself once that is settled.",
    toDo: "Ask the operator.",
});

const STATUS = {
  pending: "waits for its turn", processing: "is being prepared", broadcasting: "is being sent to the network",
  confirming: "is on the chain and waits for confirmations", confirmed: "is paid",
  failed: "has failed: the money is available again",
  cancelled: "is cancelled: the money is available again",
};

/** Every status, in the order in which they follow. */
export const STATUSES = Object.keys(STATUS);

/** Every reason that a withdrawal waits with. */
export const WAITS = Object.keys(REASONS);

/** A status as the end of a sentence: "It is paid". */
export const says = (status) => STATUS[status] ?? words(status);

export const FINAL = ["confirmed", "failed", "cancelled"];

const CLAIMS = {
  awaiting_claim: "Nobody has used the link yet. The amount is frozen until then.",
  pending: "The address is known, and the payment waits for its turn or an approval.",
  processing: "It is being paid.",
  completed: "It is paid.",
  failed: "The payment failed. The money is available again.",
  expired: "Nobody used the link in time. The money is available again.",
  cancelled: "It was cancelled. The money is available again.",
};

/** The status of a refund or a claim link as a sentence. */
export const claimSays = (status) => CLAIMS[status] ?? words(status);

/** Whether a refund or a claim link may still be cancelled. */
export const cancellable = (status) => status === "awaiting_claim" || status === "pending";

/** Whether it can not change any more. */
export const settled = (status) => ["completed", "failed", "expired", "cancelled"].includes(status);
