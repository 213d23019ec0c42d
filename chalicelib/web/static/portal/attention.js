// What needs somebody's attention, each with the way to where it is solved. Pure: the page asks, this decides.
import { countOf, isZero, shorten, since } from "../app/format.js";
import { at } from "../app/api.js";
import { health } from "../webhooks/words.js";

const SOON = 14 * 86_400_000;
const LATE = 15 * 60_000;

/** Why withdrawals wait: [tone, words, page]. */
const WAITS = {
  approval: ["warn", "for an approval", "/approvals"],
  risk: ["warn", "for the operator to look at the risk"],
  fees: ["warn", "until more network fees may be spent"],
  liquidity: ["calm", "until there is money enough in the hot wallet"],
  halted: ["warn", "since payments are stopped"],
  suspended: ["bad", "since the operator has suspended this merchant"],
};

/** Withdrawals that wait for more than their turn. `{ tone, text, to, query }` each. */
export function waiting(withdrawals, more = false) {
  const counts = new Map();
  for (const { pending_reason: reason } of withdrawals) if (reason) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].map(([reason, count]) => {
    const [tone, words, to] = WAITS[reason] ?? ["calm", `(${reason})`];
    const text = `${more ? "At least " : ""}${countOf(count, "withdrawal waits", "withdrawals wait")} ${words}`;
    return { tone, text, to: to ?? "/withdrawals", query: to ? {} : { status: "pending", pending_reason: reason } };
  });
}

/** Balances with money that is held. */
export function held(balances) {
  return balances.filter((balance) => !isZero(balance.held)).map((balance) => ({
    tone: "warn", text: `${balance.held} ${balance.symbol} on ${balance.network} is held until the operator releases it`,
    to: "/transactions", query: { releasable: "true", network: balance.network, coin: balance.coin },
  }));
}

/** Webhooks that are not well. A pause is meant. */
export function unwell(webhooks, now) {
  return webhooks.map((webhook) => [webhook, health(webhook, now)]).filter(([, found]) =>
    ["Off", "Failing"].includes(found.label)).map(([webhook, found]) => ({
    tone: found.tone, text: `The webhook ${shorten(webhook.url, 32, 10)} is ${found.label === "Off" ? "turned off"
      : "failing"}`, to: at`/webhooks/${webhook.id}`,
  }));
}

/** Keys that end within two weeks. Replaced ones are meant to end. */
export function ending(keys, now) {
  return keys
    .filter((key) => key.status === "active" && key.expires_at && !key.replaced_by
      && new Date(key.expires_at).getTime() - now < SOON)
    .map((key) => ({ tone: "warn", text: `The API key “${key.name}” expires ${since(key.expires_at, now)}`,
      to: at`/settings/keys/${key.key_id}` }));
}

/** Networks whose last scanned block is old, by many block times. `used` are those that matter. */
export function behind(networks, blocks, used, now) {
  const times = new Map(networks.map((network) => [network.network, network]));
  return blocks.flatMap(({ network, timestamp }) => {
    const known = times.get(network);
    if (!known || !used.has(network)) return [];
    if (known.status !== "active") return [{ tone: "warn", text: `${known.name} is turned off: nothing is paid or seen there`,
      to: null }];
    const age = timestamp === null ? 0 : now - new Date(timestamp).getTime();
    if (age < Math.max(LATE, known.blockTime * 20_000)) return [];
    return [{ tone: "warn", text: `${known.name} is behind: its last block that was looked at is from ${since(timestamp,
      now)}. Payments there are seen later`, to: null }];
  });
}

/** Invoices that somebody has to decide about: `partial` and `late` are how many there are, null where that is not known. */
export function invoices(partial, late) {
  const items = [];
  if (partial) items.push({ tone: "warn", text: `${countOf(partial, "invoice is", "invoices are")} part paid`,
    to: "/invoices", query: { status: "partial" } });
  if (late) items.push({ tone: "warn", text: `${countOf(late, "expired invoice",
    "expired invoices")} got money all the same: refund it, or accept it`, to: "/invoices",
      query: { status: "expired", sort: "received", order: "desc" } });
  return items;
}

const RANK = { bad: 0, warn: 1, calm: 2 };

/** The worst first. */
export const sorted = (items) => [...items].sort((one, other) => RANK[one.tone] - RANK[other.tone]);
