// What the operator reads: why something waits, whether a decision can be made about it, and how things stand. Nothing of the
// DOM.
import { amount, countOf, duration } from "../app/format.js";

/** Every reason that a withdrawal waits with: asked for by name, all that wait are listed. */
export const REASONS = ["approval", "risk", "fees", "liquidity", "halted", "suspended"];

const WAITS = {
  approval: ["Waits for approval", "It goes on once everybody who has to has agreed."],
  risk: ["Waits for your decision", "The payment looks unusual. Look at what was found, then let it go or reject it."],
  fees: ["Waits for lower fees",
    "The network's fee is too high for it, or its merchant's fee budget of the day is used up. It goes on by itself when that "
    + "changes, and fails after 24 hours where its own fee stays too high. You may let it go whatever the fee is by then."],
  liquidity: ["Waits for money in the hot wallet",
    "The hot wallet has too little of the coin, or of the coin that fees are paid in. Send more there: it goes on "
    + "within a few minutes. Nobody can let it go before."],
  halted: ["Waits because payments are stopped",
    "The kill switch is thrown. It goes on by itself, oldest first, once payments go on."],
  suspended: ["Waits because its merchant is suspended", "It goes on within a few minutes once the merchant is resumed."],
};

/** Why a withdrawal waits: `{ title, words }`. */
export function waitOf(withdrawal) {
  if (withdrawal.pending_reason === "risk" && !asksOperator(withdrawal)) {
    return { title: "Waits because its merchant owes",
      words: "A reorganisation took a deposit whose money was spent already, so that the merchant's balance of "
      + "the coin is below zero. It goes on once that is made good. Nobody can let it go before." };
  }
  if (withdrawal.pending_reason === "approval" && withdrawal.approval)
    return { title: WAITS.approval[0], words: approvalWords(withdrawal.approval) };
  const known = WAITS[withdrawal.pending_reason];
  if (known) return { title: known[0], words: known[1] };
  return { title: "Is next in line", words: "Nothing holds it back: it is taken up within a minute." };
}

function approvalWords(approval) {
  const missing = Math.max(0, approval.required_signatures - approval.signatures.length);
  const parts = [];
  if (approval.reasons.includes("multisig") && missing > 0)
    parts.push(`${countOf(missing, "signature")} of the merchant's signers ${missing === 1 ? "is" : "are"} missing.`);
  if (approval.reasons.includes("grey_list") && !approval.operator_accepted)
    parts.push("Its address is on the grey list: that is yours to decide.");
  if (approval.reasons.includes("risk") && !approval.operator_accepted)
    parts.push("The payment looks unusual: that is yours to decide.");
  return parts.join(" ") || WAITS.approval[1];
}

/** Whether the operator's word about a withdrawal is asked for, and not given yet. */
function asksOperator(withdrawal) {
  const approval = withdrawal.approval;
  return Boolean(approval && !approval.given && !approval.operator_accepted
    && approval.reasons.some((each) => each === "grey_list" || each === "risk"));
}

/** Whether an operator can let a withdrawal go now. */
export const mayAccept = (withdrawal) => asksOperator(withdrawal) || withdrawal.pending_reason === "fees";

/** Whether an operator can reject it. */
export const mayReject = (withdrawal) => withdrawal.pending_reason === "fees"
  || Boolean(withdrawal.approval && !withdrawal.approval.given);

const FINDINGS = {
  new_address: "The address is new: it was first paid less than a day ago",
  unusual_amount: "The amount is larger than every one before, and many times the usual one",
  velocity: "Many payments to new addresses within a short time",
  look_alike: "The address looks like another one that was paid before: compare it character by character",
  contract: "There is a contract at the address, and it is new",
  own_address: "The address is one of the merchant's own deposit addresses",
  repeated_failures: "Payments to the address have failed on the chain",
};

/** A finding of the risk rules in words. */
export const findingOf = (finding) => FINDINGS[finding.name] ?? finding.name;

/** Why a deposit is held, in words, by its flags. */
export function heldFor(flags) {
  if (flags.includes("set_aside")) return "Set aside: with it more would have been received of the coin than is kept in a sum";
  if (flags.includes("grey_listed")) return "Its sender is on the grey list";
  if (flags.includes("native_twin"))
    return "Its transaction may tell of one payment twice, as a token and as the network's own coin";
  if (flags.includes("below_minimum")) return "Below the coin's smallest deposit, and for no open invoice";
  return "Held";
}

const QUIET_MS = 5 * 60_000;
const TOLERATED_SECONDS = 300;

/** How a network stands: `{ state, tone, words }`. `now` in milliseconds. */
export function standing(network, now) {
  const scan = network.scan;
  if (network.status !== "active") return { state: "Inactive", tone: "calm", words: "Nothing is scanned or paid on it." };
  if (!scan) return { state: "Active", tone: "calm", words: "" };
  if (scan.halted) return { state: "Halted", tone: "bad", words: scan.halted };
  if (scan.rewindingTo !== null) {
    return { state: "Reorganisation", tone: "warn", words: `Blocks after ${amount(scan.rewindingTo)} are being undone.` };
  }
  if (network.lastBlock === null) return { state: "Not begun", tone: "warn", words: "No block was scanned yet." };
  const lag = (scan.lagBlocks ?? 0) * network.blockTime;
  if (scan.lagBlocks > 1 && lag > TOLERATED_SECONDS) {
    const backlog = scan.backlogTo === null ? "" : ` A backlog up to block ${amount(scan.backlogTo)} is being scanned.`;
    return { state: "Behind", tone: "warn",
      words: `${countOf(scan.lagBlocks, "block")} behind, about ${duration(lag)}.${backlog}` };
  }
  if (scan.polledAt !== null && now - Date.parse(scan.polledAt) > QUIET_MS) {
    return { state: "Not polled", tone: "bad",
      words: `No poll has reported for ${duration((now - Date.parse(scan.polledAt)) / 1000)}.` };
  }
  const nodes = scan.nodes ?? [];
  if (nodes.length > 0 && nodes.every((node) => node.state === "silent"))
    return { state: "No node answers", tone: "bad", words: "None of its nodes answers." };
  const troubled = nodes.filter((node) => !["well", "unasked"].includes(node.state));
  if (troubled.length > 0)
    return { state: "Node trouble", tone: "warn",
      words: `${countOf(troubled.length, "node")} of ${nodes.length} ${troubled.length === 1 ? "has" : "have"} trouble.` };
  return { state: "Well", tone: "good", words: "" };
}

/** The tone of a node's state. */
export const toneOfNode = (state) =>
  ({ well: "good", unasked: "calm", failing: "warn", resting: "warn", silent: "bad" })[state] ?? "calm";

/** How much of a range of blocks was looked at, from 0 to 100. */
export function part(rescan) {
  if (rescan.status === "completed") return 100;
  if (rescan.scannedTo === null) return 0;
  return Math.floor(((rescan.scannedTo - rescan.fromBlock + 1) / (rescan.toBlock - rescan.fromBlock + 1)) * 100);
}

const COLLECTION = {
  fee_share: "the fee is too large a part of it", no_rate: "there is no fresh rate",
  liquidity: "the hot wallet has too little for the fee",
  no_wallet: "there is no wallet to collect to", other_coin: "another coin of the same address is under way",
  energy: "energy on Tron",
  failed: "it failed", threshold: "all together are worth too little", approvals: "too many wait for you",
  held: "money there is held",
  grey_listed: "the address is on the grey list", refused: "the network refuses it", reverted: "it was undone",
  topups: "too many top-ups",
};

/** Why a collection waits or is parked, in words. */
export const collectionReason = (reason) => (reason ? COLLECTION[reason] ?? reason : "");

/** Decisions that fit a collection's status. */
export function collectionDecisions(status) {
  return { waits_for_approval: ["approve", "reject", "retry"], parked: ["retry", "reject"], waiting: ["retry"] }[status] ?? [];
}

/** The environment of a key as the operator types it. */
export const realmOf = (me) => (me.type === "test" ? "test" : "live");
