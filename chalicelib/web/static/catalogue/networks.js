// The networks and coins that forms let a person choose from, as far as the key may read them. They are asked for once in five
// minutes, however many forms a page has: a test key may ask a hundred times a minute.
import { get } from "../app/api.js";
import { can, me } from "../app/session.js";
import { useEffect, useState } from "../app/ui.js";

const KEPT = 300_000;
const known = new Map();

/** What lies at `path`, kept for this key. A failure is not kept, and is nothing: forms ask for names then. */
function kept(path) {
  const name = `${me()?.key_id} ${path}`;
  const found = known.get(name);
  if (found && Date.now() - found.at < KEPT) return found.asked;
  const asked = get(path).then(({ data }) => data, () => {
    known.delete(name);
    return null;
  });
  known.set(name, { at: Date.now(), asked });
  return asked;
}

function useKept(permission, path) {
  const [data, set] = useState(null);
  const may = can(permission);
  useEffect(() => {
    let here = true;
    if (may) kept(path).then((found) => here && set(found));
    return () => { here = false; };
  }, [may, path]);
  return data;
}

/** Options of a select, [slug, name]; null where they are not known (yet). */
export const useNetworks = () =>
  useKept("networks:read", "/networks")?.map((network) => [network.network, network.name]) ?? null;

/** All coins: `[{ coin, symbol, network }]`; null where they are not known (yet). */
export function useCoinList() {
  const coins = useKept("coins:read", "/coins");
  return coins?.map(({ coin, symbol, network }) => ({ coin, symbol, network: network?.network ?? network })) ?? null;
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
