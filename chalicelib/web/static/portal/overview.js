// The first page after signing in: what needs attention, what was received, and the balances.
import { Bars } from "../app/chart.js";
import { amount, compare, dollars, isZero, sum } from "../app/format.js";
import { Card, Empty, Failure, Icon, Loading, Notice, Page } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can, isTest } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { behind, ending, held, invoices, sorted, unwell, waiting } from "./attention.js";
import { BalanceTable, total } from "./balances.js";
import { perDay } from "./received.js";

const DAYS = 30;

/** The page "Overview". */
export default function Overview() {
  const balances = useGet(can("balances:read") ? "/balances" : null, { receivedDays: DAYS }, { every: 15 });
  return html`<${Page} title="Overview">
    <${Attention} balances=${balances.data} />
    ${can("balances:read") && html`
      <${Failure} error=${balances.error} again=${balances.again} />
      ${balances.loading && !balances.data && html`<${Loading} />`}
      ${balances.data && html`<${Received} balances=${balances.data} /><${Balances} balances=${balances.data} />`}`}
    ${!can("balances:read") && html`<${Notice} tone="calm" title="This key may not see balances">Choose from the menu what it
      may do.<//>`}
  <//>`;
}

/** `permission`'s answer to `path`, asked for once a minute; null data where this key may not. */
const useAnswer = (permission, path, query = {}) => useGet(can(permission) ? path : null, query, { every: 60 });

function Attention({ balances }) {
  const now = Date.now();
  const answers = {
    withdrawals: useAnswer("withdrawals:read", "/withdrawals", { status: "pending", limit: 100 }),
    webhooks: useAnswer("webhooks:read", "/webhooks", { limit: 20 }),
    keys: useAnswer("keys:read", "/api-keys", { limit: 100 }),
    partial: useAnswer("invoices:read", "/invoices/getAll", { status: "partial", limit: 1 }),
    late: useAnswer("invoices:read", "/invoices/getAll", { status: "expired", "received[gt]": "0", limit: 1 }),
    networks: useAnswer("networks:read", "/networks"),
    blocks: useAnswer("networks:read", "/networks/last-number-blocks"),
  };
  const { withdrawals, webhooks, keys, partial, late, networks, blocks } = answers;
  const used = new Set((balances ?? []).map((each) => each.network));
  const items = sorted([
    ...waiting(withdrawals.data ?? [], withdrawals.page?.has_next), ...held(balances ?? []),
      ...unwell(webhooks.data ?? [], now),
    ...ending(keys.data ?? [], now), ...invoices(partial.page?.total, late.page?.total),
    // The sandbox mines when it is asked to: an old block says nothing there.
    ...(isTest() ? [] : behind(networks.data ?? [], blocks.data ?? [], used, now)),
  ]);
  const all = Object.values(answers);
  const failed = all.find((each) => each.error);
  const busy = all.some((each) => each.loading && each.data === null);
  return html`<${Card} title="Needs attention">
    ${failed && html`<${Failure} error=${failed.error} again=${() => all.forEach((each) => each.error && each.again())}
      title="Not everything could be looked at" />`}
    ${busy && items.length === 0 && html`<${Loading} />`}
    ${!busy && items.length === 0 && !failed && html`<p class="calm-line"><span
      class="good"><${Icon} tone="good" /></span> Nothing: all is well.</p>`}
    ${items.length > 0 && html`<ul class="attention">${items.map((item) =>
      html`<li key=${item.text} class=${item.tone}><${Icon} tone=${item.tone} />
      <span dir="auto">${item.to ? html`<${Link} to=${item.to} query=${item.query}>${item.text}<//>`
        : item.text}</span></li>`)}</ul>`}
  <//>`;
}

/** "31 May" */
const date = (text) => new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short",
  timeZone: "UTC" }).format(new Date(`${text}T00:00:00Z`));

function Received({ balances }) {
  const days = perDay(balances, Date.now(), DAYS);
  const told = (each) => {
    if (each.coins.length === 0) return "nothing";
    const coins = each.coins.map((coin) => `${amount(coin.amount)} ${coin.symbol} on ${coin.network}`).join(", ");
    return `${dollars(each.usd)}${each.unknown ? " and more, whose worth is not known" : ""}: ${coins}`;
  };
  const bars = days.map((each) => ({ label: date(each.day), value: Number(each.usd), text: told(each) }));
  const any = days.some((each) => each.coins.length > 0);
  const best = days.reduce((most, each) => (compare(each.usd, most.usd) > 0 ? each : most));
  return html`<${Card} title=${`Received in the last ${DAYS} days`}>
    ${any
      ? html`<p class="big">${dollars(sum(...days.map((each) => each.usd)))}</p>
        <${Bars} title="Received per day, in US dollars" bars=${bars} labels=${["Day (UTC)", "Received"]} />
        <p class="fine">By the day (UTC) on which it could be used, at its worth then. The best
          day: ${dollars(best.usd)} on ${date(best.day)}.</p>`
      : html`<${Empty} title="Nothing yet">What your customers pay shows up here once it is confirmed.<//>`}
  <//>`;
}

function Balances({ balances }) {
  const rows = balances.filter((each) => !isZero(each.balance) || !isZero(each.pending));
  const { usd, unknown } = total(rows);
  return html`<${Card} title="Balances" actions=${html`<${Link} to="/balances" class="button quiet">All balances<//>`}>
    ${rows.length === 0
      ? html`<${Empty} title="No money yet" actions=${can("invoices:create")
      && html`<${Link} to="/invoices/new" class="button">New invoice<//>`}>
          Make an invoice, and send its link to whom it is for.<//>`
      : html`<p class="big">${dollars(usd)}</p>${unknown && html`<p
      class="fine">Without the coins that have no fresh rate.</p>`}<${BalanceTable} rows=${rows} />`}
  <//>`;
}
