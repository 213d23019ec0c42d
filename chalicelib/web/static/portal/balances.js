// The merchant's balance of each coin.
import { fiat, isZero, sumOfDollars } from "../app/format.js";
import { List, Table } from "../app/list.js";
import { Amount, Empty, Page } from "../app/parts.js";
import { html } from "../app/ui.js";

const part = (name, label) => ({
  name, label, align: "end", sort: name, show: (row) => html`<${Amount} value=${row[name]} symbol=${row.symbol} />`,
});

const some = (name, label) => ({ name, label, align: "end", show: (row) =>
  (isZero(row[name]) ? "" : html`<${Amount} value=${row[name]} symbol=${row.symbol} />`) });

const BRIEF = [
  { name: "coin", label: "Coin", show: (row) => `${row.symbol} on ${row.network}` },
  { name: "available", label: "Available", align: "end", show: (row) =>
    html`<${Amount} value=${row.available} symbol=${row.symbol} />` },
  some("frozen", "For withdrawals"), some("held", "Held"), some("pending", "On its way"),
  { name: "balanceUSD", label: "Worth", align: "end", show: (row) =>
    (row.balanceUSD === null ? "Not known" : fiat(row.balanceUSD)) },
];
const WHOLE = [
  { ...BRIEF[0], sort: "symbol" }, part("available", "Available"), part("frozen", "For withdrawals"), part("held", "Held"),
  part("pending", "On its way"), { ...BRIEF.at(-1), sort: "balanceUSD" },
];

/** What all balances are worth, in US dollars: `{ usd, unknown }`, where `unknown` says that a coin has no rate now. */
export function total(balances) {
  const known = balances.filter((each) => each.balanceUSD !== null);
  return { usd: sumOfDollars(known.map((each) => each.balanceUSD)), unknown: known.length < balances.length };
}

/** The balances that have anything, as a table. */
export const BalanceTable = ({ rows }) =>
  html`<${Table} label="Balances" columns=${BRIEF} rows=${rows} rowKey=${(row) => `${row.network}:${row.coin}`} />`;

/** The page "Balances". */
export default function Balances() {
  return html`<${Page} title="Balances"
    lead="Only “available” can be paid out. “Held” waits for the operator; “on its way” is not confirmed yet.">
    <${List} label="Balances" path="/balances" plain columns=${WHOLE} every=${15}
      rowKey=${(row) => `${row.network}:${row.coin}`}
      empty=${html`<${Empty} title="No money yet">What your customers pay shows up here.<//>`} />
  <//>`;
}
