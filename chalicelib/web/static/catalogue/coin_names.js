// Names of coins on networks, in forms and for people.
/** Names a coin on a network in a form. */
export const coinKey = (coin, network) => `${coin}@${network}`;

/** `{ coin, network }` of such a name; "" for what it does not say. */
export function coinOf(key) {
  const [coin = "", network = ""] = String(key ?? "").split("@");
  return { coin, network };
}

/** "USDT on tron" */
export const coinName = (symbol, network) =>
  (network ? `${String(symbol).toUpperCase()} on ${network}` : String(symbol).toUpperCase());
