// Links to the explorers that people look at chains with. A simulated network has none: its transactions are nowhere else.
import { webLink } from "./format.js";

const PLACES = { tron: ["/#/transaction/", "/#/address/"] };
const USUAL = ["/tx/", "/address/"];

function link(network, place, text) {
  const base = network && !network.isTestnet ? webLink(network.explorerUrl ?? "") : null;
  const parts = PLACES[network?.network] ?? USUAL;
  return base && text ? base.replace(/\/+$/, "") + parts[place] + encodeURIComponent(text) : null;
}

/** Where a transaction of `network` (as GET /networks/{network} answers it) can be looked at; null where nowhere. */
export const transactionLink = (network, hash) => link(network, 0, hash);

/** The same of an address. */
export const addressLink = (network, address) => link(network, 1, address);
