// The fields of an address's forms.
import { coinsOn } from "../catalogue/networks.js";

const MODES = [
  ["common", "All coins of the network"], ["cross", "All coins of all EVM networks"], ["single", "One coin"],
];

/** Fields for a new address; `networks` and `coins` as `catalogue/networks.js` has them, null where they are not known. */
export function addressFields(networks, coins) {
  const network = { name: "network", label: "Network", required: true };
  const coin = { name: "coin", label: "Coin", required: true, when: (values) => values.mode === "single" };
  return [
    networks ? { ...network, kind: "select", options: networks } : { ...network, kind: "text", example: "ethereum" },
    { name: "mode", label: "It receives", kind: "select", options: MODES, empty: "What is usual here" },
    coins ? { ...coin, kind: "select", options: (values) => coinsOn(coins, values.network) }
      : { ...coin, kind: "text", example: "usdt" },
    { name: "label", label: "Label", kind: "text", most: 200, hint: "What you call it, such as a customer or a till." },
  ];
}
