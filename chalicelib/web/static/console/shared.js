// What several pages of the console share.
import { at } from "../app/api.js";
import { html } from "../app/ui.js";
import { Code, Copy } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";

/** A command of the operator's command line: what is done there and not here. */
export function Command({ children: command }) {
  // One line, however it is written in a module: it is copied into a shell.
  const text = [command].flat().join("").replace(/\s+/g, " ");
  return html`<p class="code"><code>${text}</code><${Copy} value=${text} what="command" /></p>`;
}

/** A merchant by its id, with its name where this key may see merchants. */
export function Merchant({ id }) {
  const { data } = useGet(id && can("merchant:read") ? at`/merchants/${id}` : null);
  if (!id) return html`<span class="soft">the operator</span>`;
  if (!can("merchant:read")) return html`<${Code} value=${id} what="merchant" />`;
  return html`<${Link} to=${at`/merchants/${id}`}>${data?.name ?? id}<//>`;
}

/** The slugs of this realm's networks for filters and forms, as [slug, name]; empty until they are known. */
export function useNetworks() {
  const { data } = useGet(can("networks:read") ? "/networks" : null);
  return (data ?? []).map((each) => [each.network, each.name]);
}

/** The same of coins: their symbols. */
export function useCoins() {
  const { data } = useGet(can("coins:read") ? "/coins" : null);
  return [...new Set((data ?? []).map((each) => each.coin))].sort().map((slug) => [slug, slug.toUpperCase()]);
}

