// Search: what was pasted is asked for in every form that it fits, and the page says what it looked for.
import { get } from "../app/api.js";
import { SearchBox } from "../app/signing_in.js";
import { Amount, Card, Code, Empty, Failure, Loading, Page, Status, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { html, useEffect, useState } from "../app/ui.js";
import { lookups } from "../app/lookups.js";

const NOTHING = new Set([400, 404]);

/** Ask one question: `{ found: [...], error }`. What the API does not know, or does not take for such a thing, is not found. */
async function answer(lookup) {
  try {
    const { data } = await get(lookup.path, lookup.query);
    return { lookup, found: Array.isArray(data) ? data : [data], error: null };
  } catch (error) {
    return { lookup, found: [], error: NOTHING.has(error.status) ? null : error };
  }
}

/** The page "Search". */
export default function Search({ query }) {
  const text = (query.q ?? "").trim();
  const [answers, set] = useState(null);
  const [round, again] = useState(0);
  const asked = lookups(text).filter((lookup) => can(lookup.needs));
  useEffect(() => {
    let here = true;
    set(null);
    Promise.all(asked.map(answer)).then((all) => here && set(all));
    return () => { here = false; };
  }, [text, round]);
  const found = answers?.filter((each) => each.found.length > 0) ?? [];
  const failed = answers?.find((each) => each.error);
  return html`<${Page} title="Search" lead="A transaction's hash, an address, an id, or your own external id.">
    <${Card}><${SearchBox} to="/search" /><//>
    ${text && !answers && html`<${Loading}>Looking…<//>`}
    ${failed && html`<${Failure} error=${failed.error} again=${() => again(round + 1)} />`}
    ${found.map((each) => html`<${Found} key=${each.lookup.what} answer=${each} />`)}
    ${text && answers && found.length === 0 && !failed
      && html`<${Empty} title="Nothing found">Nothing of yours is called <code>${text}</code> here. Look whether this key
      belongs to the right environment (test or live).<//>`}
    ${text && answers
      && html`<p class="fine">Looked for: ${asked.map((each) => each.what.toLowerCase()).join(", ")
        || "nothing, since this key may not"}.</p>`}
  <//>`;
}

function Found({ answer: { lookup, found } }) {
  return html`<${Card} title=${lookup.what}><ul class="plain">${found.map((each) => html`<li key=${each.id ?? each.key_id}>
    <${Link} to=${lookup.to(each)}>${each.externalId ?? each.label ?? each.name ?? each.id ?? each.key_id}<//>${" "}
    ${each.status && html`<${Status} value=${each.status} />`}${" "}
    ${typeof each.amount === "string"
      && html`<${Amount} value=${each.amount} symbol=${each.symbol ?? each.coin ?? each.currency} />`}${" "}
    ${(each.hash ?? each.address) && html`<${Code} value=${each.hash ?? each.address} />`}${" "}
    <span class="soft"><${Time} at=${each.createdAt ?? each.created_at} /></span></li>`)}</ul><//>`;
}
