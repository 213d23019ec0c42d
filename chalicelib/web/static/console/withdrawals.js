// Withdrawals that wait, of all merchants, and why.
import { at } from "../app/api.js";
import { List } from "../app/list.js";
import { Amount, Empty, Page, Status, Tabs, Time } from "../app/parts.js";
import { go } from "../app/router.js";
import { shorten, words } from "../app/format.js";
import { html } from "../app/ui.js";
import { useCoins, useNetworks } from "./shared.js";
import { REASONS, mayAccept, waitOf } from "./words.js";

const VIEWS = [["all", "All that wait"], ["mine", "For approval"]];

/** The page "Waiting withdrawals". */
export default function Withdrawals({ query }) {
  const view = query.view === "mine" ? "mine" : "all";
  const networks = useNetworks();
  const coins = useCoins();
  const columns = [
    { name: "amount", label: "Amount", sort: true, show: (row) => html`<${Amount} value=${row.amount} symbol=${row.coin} />` },
    { name: "network", label: "Network", sort: true },
    { name: "pending_reason", label: "Why it waits", sort: true, show: (row) => html`<${Status} value=""
      tone=${mayAccept(row) ? "warn" : "calm"} label=${waitOf(row).title} />` },
    { name: "to_address", label: "To", show: (row) => html`<code title=${row.to_address}>${shorten(row.to_address)}</code>` },
    { name: "merchant_id", label: "Merchant",
      show: (row) => html`<code title=${row.merchant_id}>${shorten(row.merchant_id)}</code>` },
    { name: "created_at", label: "Asked for", sort: true, show: (row) => html`<${Time} at=${row.created_at} ago=${true} />` },
  ];
  const filters = [
    { name: "pending_reason", label: "Why", kind: "select", options: REASONS.map((each) => [each, words(each)]) },
    { name: "network", label: "Network", kind: "select", options: networks },
    { name: "coin", label: "Coin", kind: "select", options: coins },
    { name: "to_address", label: "To address", kind: "text" },
    { name: "created_at", label: "Asked for", kind: "time" },
  ];
  const fixed = view === "mine" ? {} : { "pending_reason[in]": REASONS.join(",") };
  // The reason is a filter of all that wait: asked for by it, the API lists those too that nobody can decide about.
  const shown = view === "mine" ? filters.slice(1) : filters;
  return html`<${Page} title="Waiting withdrawals"
    lead="Of all merchants. Each says what it waits for; some go on by your word.">
    <${Tabs} label="Which" tabs=${VIEWS} chosen=${view}
      choose=${(next) => go("/withdrawals", next === "mine" ? { view: next } : {})}>
      <${List} path="/withdrawals/requests" label="Withdrawals" columns=${columns} filters=${shown} query=${fixed} every=${30}
        to=${(row) => at`/withdrawals/${row.id}`}
          empty=${html`<${Empty} title=${view === "mine" ? "Nothing waits for approval" : "No withdrawal waits"}>${
          view === "mine"
            ? "Payments that look unusual, go to the grey list, or cost too much, and those that merchants' signers have to "
              + "sign."
            : "What is asked for is paid at once."}<//>`} />
    <//>
  <//>`;
}
