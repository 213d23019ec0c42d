// The first page after signing in.
import { Amount, Card, Empty, Failure, Loading, Page } from "../app/parts.js";
import { can } from "../app/session.js";
import { Table } from "../app/list.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";

/** The page "Overview". */
export default function Overview() {
  return html`<${Page} title="Overview">${can("balances:read") && html`<${Balances} />`}<//>`;
}

function Balances() {
  const { data, error, loading, again } = useGet("/balances", {}, { every: 15 });
  const columns = [
    { name: "coin", label: "Coin", show: (row) => `${row.symbol} on ${row.network}` },
    { name: "available", label: "Available", align: "end", show: (row) => html`<${Amount} value=${row.available} symbol=${row.symbol} usd=${row.balanceUSD} />` },
    { name: "pending", label: "On its way", align: "end", show: (row) => html`<${Amount} value=${row.pending} symbol=${row.symbol} />` },
  ];
  return html`<${Card} title="Balances">
    <${Failure} error=${error} again=${again} />
    ${loading && !data && html`<${Loading} />`}
    ${data?.length === 0 && html`<${Empty} title="No money yet">What your customers pay shows up here.<//>`}
    ${data?.length > 0 && html`<${Table} label="Balances" columns=${columns} rows=${data} rowKey=${(row) => `${row.network}:${row.coin}`} />`}
  <//>`;
}
