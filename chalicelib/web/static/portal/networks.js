// The networks and coins that forms let a person choose from, as far as the key may read them.
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";

/** Options of a select, [slug, name]; null where they are not known (yet). */
export function useNetworks() {
  const { data } = useGet(can("networks:read") ? "/networks" : null);
  return data?.map((network) => [network.network, network.name]) ?? null;
}

/** All coins: `[{ coin, symbol, network }]`; null where they are not known (yet). */
export function useCoinList() {
  const { data } = useGet(can("coins:read") ? "/coins" : null);
  return data?.map((each) => ({ coin: each.coin, symbol: each.symbol,
    network: each.network?.network ?? each.network })) ?? null;
}

/** The coins of one network as options of a select. */
export const coinsOn = (coins, network) => coins.filter((each) => each.network === network).map((each) =>
  [each.coin, each.symbol]);

/** A field for a network, and one for a coin on it: selects where the choices are known, texts where not. */
export function placeFields(networks, coins, value = {}) {
  const network = { name: "network", label: "Network", required: true, value: value.network };
  const coin = { name: "coin", label: "Coin", required: true, value: value.coin };
  return [
    networks ? { ...network, kind: "select", options: networks } : { ...network, kind: "text", example: "ethereum" },
    coins ? { ...coin, kind: "select", options: (values) => coinsOn(coins, values.network) }
      : { ...coin, kind: "text", example: "usdt" },
  ];
}
