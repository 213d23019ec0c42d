// What was received per day, over all coins: figures for a chart, from what the balances say.
import { sumOfDollars } from "../app/format.js";

const DAY = 86_400_000;
const dayOf = (at) => new Date(at).toISOString().slice(0, 10);

/** The last day to show: today (UTC), or a later one, where the sandbox's clock was moved. */
function lastDay(balances, now) {
  const days = balances.flatMap((balance) => balance.received?.days ?? []).map((each) => each.day);
  return [dayOf(now), ...days].sort().at(-1);
}

/**
 * `count` days, oldest first: `{ day, usd, unknown, coins }`. `usd` is a decimal string; `unknown`: a coin of
 * that day has no known worth; `coins` are `[{ symbol, network, amount }]`.
 */
export function perDay(balances, now, count = 30) {
  const end = new Date(`${lastDay(balances, now)}T00:00:00Z`).getTime();
  const days = Array.from({ length: count }, (_, place) => dayOf(end - (count - 1 - place) * DAY));
  const found = new Map(days.map((day) => [day, { day, usd: "0", unknown: false, coins: [] }]));
  for (const balance of balances) {
    for (const each of balance.received?.days ?? []) {
      const own = found.get(each.day);
      if (!own) continue;
      if (each.amountUSD === null) own.unknown = true;
      else own.usd = sumOfDollars([own.usd, each.amountUSD]);
      own.coins.push({ symbol: balance.symbol, network: balance.network, amount: each.amount });
    }
  }
  return [...found.values()];
}
