// What a person can make the simulated networks do. Each sends what the form has, and has the page read its records anew.
import { at, get, post } from "../app/api.js";
import { lookSoon } from "../app/use.js";

async function confirmationsOf(network) {
  const { data } = await get(at`/networks/${network}`);
  return data.confirmations;
}

/** Pay `{ address, network, coin, amount, from }`; with `confirm` its confirmations are mined, too. */
export async function pay({ confirm, ...body }, { key }) {
  const { data: paid } = await post("/sandbox/deposits", body, { key });
  if (confirm) {
    const count = await confirmationsOf(body.network);
    await post("/sandbox/blocks", { network: body.network, count }, { key: `${key}-blocks` });
  }
  lookSoon();
  return { ...paid, confirmed: confirm };
}

/** Mine `count` blocks. */
export async function mine({ network, count }, { key }) {
  const { data } = await post("/sandbox/blocks", { network, count }, { key });
  lookSoon();
  return data;
}

/** Replace the last `depth` blocks; with `remine` what was in them comes back. */
export async function reorganise({ network, depth, remine }, { key }) {
  const { data } = await post("/sandbox/reorg", { network, depth, remine }, { key });
  lookSoon();
  return data;
}

const UNITS = { minutes: 60, hours: 3_600, days: 86_400 };

/** Move the time forward by `count` of `unit`. */
export async function advance({ count, unit }, { key }) {
  const { data } = await post("/sandbox/clock", { advance: count * UNITS[unit] }, { key });
  lookSoon();
  return data;
}

/** Set a rate, take it back, or make it stale. */
export async function setRate({ coin, fiat, what, value }, { key }) {
  const body = { own: { coin, fiat, value }, usual: { coin, fiat, value: null }, stale: { coin, fiat, stale: true } }[what];
  const { data } = await post("/sandbox/rates", body, { key });
  return data;
}

/** Decide what the chain makes of a withdrawal. */
export async function settle(id, { outcome }) {
  const { data } = await post(at`/sandbox/withdrawals/${id}`, { outcome });
  lookSoon();
  return data;
}
