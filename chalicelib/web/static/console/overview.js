// The first page of the console: what needs attention, and how the networks stand.
import { countOf } from "../app/format.js";
import { Card, Empty, Failure, Loading, Notice, Page, Status } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { Networks } from "./network_table.js";
import { REASONS, standing } from "./words.js";

const asked = (needs, path) => (can(needs) ? path : null);

/** The page "Overview". */
export default function Overview() {
  const networks = useGet(asked("networks:read", "/networks"), {}, { every: 15 });
  return html`<${Page} title="Overview" lead="What needs you, and how the networks stand.">
    <${Attention} networks=${networks.data ?? []} />
    ${can("networks:read") && html`<${AllNetworks} answer=${networks} />`}
  <//>`;
}

function Attention({ networks }) {
  const decide = useGet(asked("withdrawals:read", "/withdrawals/requests"), { limit: 1 }, { every: 30 });
  const waits = useGet(asked("withdrawals:read", "/withdrawals/requests"),
    { limit: 1, "pending_reason[in]": REASONS.join(",") }, { every: 60 });
  const held = useGet(asked("transactions:read", "/transactions"), { limit: 1, releasable: "true" }, { every: 60 });
  const collections = useGet(asked("addresses:read", "/collections"),
    { limit: 1, "status[in]": "waits_for_approval,parked" }, { every: 60 });
  const strays = useGet(asked("addresses:read", "/stray-payments"), { limit: 1, status: "open" }, { every: 60 });
  const payments = useGet(asked("withdrawals:read", "/withdrawals/switch"), {}, { every: 60 });
  const books = useGet(asked("networks:read", "/reconciliation"), {}, { every: 120 });
  const all = [decide, waits, held, collections, strays, payments, books];
  const failed = all.find((each) => each.error);
  const items = [
    item(decide, "/withdrawals", { view: "mine" }, "withdrawal", "waits for approval", "wait for approval", "warn"),
    item(held, "/held", {}, "deposit", "can be released", "can be released", "calm"),
    item(collections, "/collections", {}, "collection", "needs your decision", "need your decision", "warn"),
    item(strays, "/strays", { status: "open" }, "stray payment", "is undecided", "are undecided", "warn"),
  ].filter(Boolean);
  const troubled = networks.map((each) => ({ each, found: standing(each, Date.now()) })).filter(({ found }) =>
    found.tone === "warn" || found.tone === "bad");
  const resting = (waits.page?.total ?? 0) - (decide.page?.total ?? 0);
  const grave = payments.data?.stopped || books.data?.solvent === false;
  return html`<${Card} title="Attention">
    ${failed && html`<${Failure} error=${failed.error} again=${() => all.forEach((each) => each.again())} />`}
    ${payments.data?.stopped && html`<${Notice} tone="bad" title="Payments are stopped"
      actions=${html`<${Link} to="/payments" class="button quiet">Kill switch<//>`}>
      <p>${payments.data.reason ?? "No reason was given."}</p><//>`}
    ${books.data?.solvent === false && html`<${Notice} tone="bad" title="The chains hold less than merchants have"
      actions=${html`<${Link} to="/solvency" class="button quiet">Solvency<//>`}><p>Look at the differences.</p><//>`}
    ${troubled.length > 0
      && html`<ul class="plain">
        ${troubled.map(({ each, found }) => html`<li key=${each.network}><${Status} value="" tone=${found.tone}
      label=${found.state} />${" "}
        <${Link} to=${`/networks/${each.network}`}>${each.name}<//> <span class="soft">${found.words}</span></li>`)}</ul>`}
    ${items.length > 0 && html`<ul class="plain">${items.map((each) => html`<li key=${each.to}><${Status} value=""
      tone=${each.tone} label=${each.count} />${" "}
      <${Link} to=${each.to} query=${each.query}>${each.text}<//></li>`)}</ul>`}
    ${resting > 0
      && html`<p class="fine">
        <${Link} to="/withdrawals">${countOf(resting, "more withdrawal")} ${resting === 1 ? "waits" : "wait"}<//> for something
        else: money, fees, the kill switch.</p>`}
    ${all.some((each) => each.loading && !each.data) && !failed && html`<${Loading} />`}
    ${items.length === 0 && troubled.length === 0 && !grave && !failed && all.every((each) => !each.loading || each.data)
      && html`<${Empty} title="Nothing needs you">Withdrawals, deposits,
      collections and stray payments that wait for a decision show up here.<//>`}
  <//>`;
}

function item(answer, to, query, what, one, many, tone) {
  const total = answer.page?.total ?? 0;
  if (total === 0) return null;
  const more = answer.page.total_capped ? "+" : "";
  return { to, query, tone, count: `${total}${more}`, text: `${total === 1 ? what : `${what}s`} ${total === 1 ? one : many}` };
}

function AllNetworks({ answer: { data, error, loading, again } }) {
  const troubled = (data ?? []).filter((each) => ["warn", "bad"].includes(standing(each, Date.now()).tone));
  return html`<${Card} title="Networks" actions=${html`<${Link} to="/networks" class="button quiet">All about them<//>`}>
    <${Failure} error=${error} again=${again} />
    ${loading && !data && html`<${Loading} />`}
    ${data && troubled.length === 0 && html`<p class="soft">No network is halted or behind, and no node has trouble.</p>`}
    ${data && html`<${Networks} networks=${data} brief=${true} />`}
  <//>`;
}
