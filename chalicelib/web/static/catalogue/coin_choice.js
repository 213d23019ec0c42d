// Coins that can be paid out, as one choice of coin and network.
import { amount, isZero } from "../app/format.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { coinKey, coinName, coinOf } from "./coin_names.js";

/** Coins as options of a select, those with money first. */
export function coinOptions(coins, balances) {
  const held = new Map((balances ?? []).map((one) => [coinKey(one.coin, one.network), one.available]));
  const free = (coin) => held.get(coinKey(coin.coin, coin.network.network)) ?? "0";
  const has = (coin) => !isZero(free(coin));
  const name = (coin) => coinName(coin.symbol, coin.network.network);
  const active = coins.filter((coin) => coin.status === "ACTIVE");
  return [...active.filter(has), ...active.filter((coin) => !has(coin))].map((coin) => [
    coinKey(coin.coin, coin.network.network), has(coin) ? `${name(coin)} (${amount(free(coin))} available)` : name(coin),
  ]);
}

/** Coins and balances, as far as this key may read them: `{ coins, balances, loading, error, again }`. */
export function useCoins() {
  const coins = useGet(can("coins:read") ? "/coins" : null);
  const balances = useGet(can("balances:read") ? "/balances" : null);
  return {
    coins: coins.data, balances: balances.data,
    loading: coins.loading || balances.loading, error: coins.error ?? balances.error,
    again: () => { coins.again(); balances.again(); },
  };
}

/** The fields that choose a coin: one choice, or two texts where this key may not list coins. */
export function coinFields(coins, balances, value) {
  if (coins) {
    return [{ name: "choice", label: "Coin", kind: "select", required: true, options: coinOptions(coins, balances), value }];
  }
  return [
    { name: "coin", label: "Coin", kind: "text", required: true, example: "usdt", most: 32, value: coinOf(value).coin },
    { name: "network", label: "Network", kind: "text", required: true, example: "tron", most: 32,
      value: coinOf(value).network },
  ];
}

/** `{ coin, network }` of a form's values, whichever fields it has. */
export const coinIn = (values) => (values.choice ? coinOf(values.choice) : { coin: values.coin, network: values.network });
