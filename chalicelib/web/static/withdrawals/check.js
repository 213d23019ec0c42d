// What is said about a withdrawal before it is made: reads what this key may read, and judges it. The service decides.
import { at, get, post } from "../app/api.js";
import { compare, difference, isAmount } from "../app/format.js";
import { limit, wrongAmount } from "../payouts/file.js";

/** Ask for everything that the check page shows. What the key may not read is null. Raises ApiFailure. */
export async function factsAbout({ network, coin, to_address: address }, can) {
  const when = (permission, ask) => (can(permission) ? ask().then(({ data }) => data) : Promise.resolve(null));
  const [validation, fees, balances, details, settings, entries, before] = await Promise.all([
    when("addresses:read", () => post("/addresses/validate", { network, address })),
    when("withdrawals:read", () => get("/withdrawals/fees", { network, coin })),
    when("balances:read", () => get("/balances")),
    when("coins:read", () => get(at`/coins/${coin}`, { network })),
    when("merchant:read", () => get("/merchant/settings")),
    when("whitelist:read", () => get("/whitelist/addresses", { address, network, limit: 1 })),
    when("withdrawals:read", () => get("/withdrawals", { to_address: address, network, limit: 20 })),
  ]);
  const balance = balances && (balances.find((one) => one.network === network && one.coin === coin) ?? { available: "0" });
  return { validation, fees, balance, coin: details, settings, entry: entries && (entries[0] ?? null), before };
}

const line = (tone, title, words = "") => ({ tone, title, words });

/** What is to be said about `asked` ({ network, coin, amount, to_address, … }): `[{ tone, title, words }]`, worst first. */
export function judged(asked, facts, now = Date.now()) {
  const symbol = facts.coin?.symbol ?? asked.coin.toUpperCase();
  const lines = [
    ...ofAddress(asked, facts), ...ofAmount(asked, facts, symbol), ...ofTrust(asked, facts), ...ofHistory(asked, facts, now),
    ...ofSignatures(asked, facts),
  ];
  const order = ["bad", "warn", "calm", "good"];
  return lines.sort((one, other) => order.indexOf(one.tone) - order.indexOf(other.tone));
}

/** Whether something says that it can not be made. */
export const hopeless = (lines) => lines.some((each) => each.tone === "bad");

function ofAddress(asked, { validation }) {
  if (!validation) {
    return [line("calm", "The address is looked at when you send", "This key may not ask about addresses before.")];
  }
  if (!validation.valid) return [line("bad", `This is no address of ${asked.network}`, validation.reason)];
  const words = "Its form and checksum are right. Whose it is, nobody can say: compare it.";
  return [line("good", `It is an address of ${asked.network}`, words)];
}

function ofAmount(asked, { balance, coin }, symbol) {
  const wrong = wrongAmount(asked.amount, coin ? { ...coin, symbol } : null);
  if (wrong.length > 0) return [line("bad", "The amount can not be paid", wrong.join("; "))];
  if (!balance || !isAmount(balance.available)) return [];
  if (compare(balance.available, asked.amount) < 0) {
    const words = `${balance.available} ${symbol} are available: ${difference(asked.amount, balance.available)} are missing.`;
    return [line("bad", "There is not enough", words)];
  }
  const day = coin && !coin.settings?.useUsdLimits ? limit(coin.settings?.maxValueDaily) : null;
  const most = day ? ` At most ${day} ${symbol} go out in 24 hours.` : "";
  const words = `Less the network's fee, where your account pays it.${most}`;
  return [line("good", `${difference(balance.available, asked.amount)} ${symbol} are left afterwards`, words)];
}

function ofTrust(asked, { entry, settings }) {
  if (entry) {
    const limits = [["in 24 hours", entry.daily_limit], ["in 30 days", entry.monthly_limit]].filter(([, most]) => most);
    const over = limits.find(([, most]) => compare(asked.amount, most) > 0);
    const words = limits.map(([span, most]) => `At most ${most} ${span}.`).join(" ");
    if (over) return [line("bad", `It is more than this address may get ${over[0]}`, words)];
    return [line("good", `The address is on your whitelist${entry.label ? ` as “${entry.label}”` : ""}`, words)];
  }
  if (settings?.whitelist_enforced) {
    const words = "Only addresses of the whitelist are paid. Add it there first.";
    return [line("bad", "The address is not on your whitelist", words)];
  }
  return [];
}

const DAY = 86_400_000;

function ofHistory(asked, { before }, now) {
  if (!before) return [];
  const kept = before.filter((one) => !["failed", "cancelled"].includes(one.status));
  const late = kept.filter((one) => one.coin === asked.coin && now - Date.parse(one.created_at) < DAY);
  const twin = late.find((one) => same(one.amount, asked.amount));
  if (twin) {
    const words = `${twin.id} pays the same amount to the same address.`;
    return [line("warn", "The same was asked for within the last day", words)];
  }
  if (kept.length > 0) return [line("good", "You have paid this address before")];
  const words = "Payments to new addresses may wait until the operator has looked at them.";
  return [line("calm", "You pay this address for the first time", words)];
}

const same = (one, other) => isAmount(one) && isAmount(other) && compare(one, other) === 0;

function ofSignatures(asked, { settings }) {
  const config = settings?.multisig_config;
  if (!config?.enabled) return [];
  const { threshold_amount: from, required_signatures: many, signers } = config;
  const words = `From ${from} on, in 24 hours and without signatures, ${many} signatures are needed.`;
  if (compare(asked.amount, from) < 0) return [line("calm", "It may wait for signatures", words)];
  return [line("warn", `It will wait for ${many} signatures`, `Signers: ${signers.map(({ id }) => id).join(", ")}.`)];
}
