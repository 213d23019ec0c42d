// The coins that this key may see, as options of forms: one for each coin on each network.
import { useGet } from "../app/use.js";
import { can } from "../app/session.js";
import { useMemo } from "../app/ui.js";
import { coinKey, coinName } from "./coin_names.js";

/**
 * `{ ready, known, coins, options, slugs, error, again }`: the active coins, `options` as [key, words], `slugs` without
 * networks. A key that may not see coins has none: forms ask for the names then.
 */
export function useCoins() {
  const may = can("coins:read");
  const { data, error, again } = useGet(may ? "/coins" : null);
  return useMemo(() => {
    const coins = (data ?? []).filter((coin) => coin.status === "ACTIVE").map((coin) =>
      ({ ...coin, network: coin.network?.network ?? coin.network }));
    return {
      ready: !may || data !== null,
      known: coins.length > 0,
      coins,
      options: coins.map((coin) => [coinKey(coin.coin, coin.network), `${coin.name} (${coinName(coin.symbol, coin.network)})`]),
      slugs: [...new Set(coins.map((coin) => coin.coin))],
      error,
      again,
    };
  }, [data, error]);
}
