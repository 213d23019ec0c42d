// Links into the networks' public block explorers, as the operator has set them.
import { get } from "../app/api.js";
import { webLink } from "../app/format.js";
import { Code, Out } from "../app/parts.js";
import { can, isTest } from "../app/session.js";
import { html, useEffect, useState } from "../app/ui.js";

const HASH = /^(0x)?[0-9a-fA-F]{64}$/;
const known = new Map();

/** The explorer's page of a transaction; null without an explorer, and for a text that is no hash. */
export function transactionUrl(explorer, network, hash) {
  if (!HASH.test(String(hash)) || !webLink(explorer)) return null;
  // Tronscan shows its pages by fragment.
  return `${String(explorer).replace(/\/+$/, "")}${network === "tron" ? "/#/transaction/" : "/tx/"}${hash}`;
}

/** One question for each network, however many links there are. */
function explorerOf(network) {
  if (!known.has(network)) {
    const asked = get(`/networks/${encodeURIComponent(network)}`).then(({ data }) => data.explorerUrl ?? null);
    known.set(network, asked.catch(() => {
      known.delete(network);
      return null;
    }));
  }
  return known.get(network);
}

/** A transaction's hash, with a link to the network's explorer where there is one. Simulated networks have none. */
export function TxHash({ network, hash }) {
  const [explorer, found] = useState(null);
  useEffect(() => {
    let here = true;
    if (network && hash && !isTest() && can("networks:read")) explorerOf(network).then((url) => here && found(url));
    return () => { here = false; };
  }, [network, hash]);
  if (!hash) return html`<span class="soft">Not yet</span>`;
  const link = transactionUrl(explorer, network, hash);
  return html`<${Code} value=${hash} what="transaction hash" />${link && html` <${Out} href=${link}>Explorer<//>`}`;
}
