// One address: what lies on it, what came, its label, and archiving it.
import { at, del, put } from "../app/api.js";
import { Ask, Dialog, useDialog } from "../app/dialog.js";
import { Form } from "../app/form.js";
import { fiat, isZero, shorten } from "../app/format.js";
import { List, Table } from "../app/list.js";
import { Amount, Button, Card, Code, Empty, Facts, Failure, Loading, Notice, Page, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { COLUMNS } from "../transactions/columns.js";

/** The page of an address. */
export default function Address({ params }) {
  const path = at`/addresses/${params.id}`;
  const { data: address, error, loading, again, put: show } = useGet(path, {}, { every: 30 });
  return html`<${Page} title=${address?.label ?? (address ? shorten(address.address, 10, 8) : "Address")}
      actions=${address && can("addresses:write") && html`<${Actions} address=${address} path=${path} show=${show} />`}>
    <p class="fine"><${Link} to="/addresses">All addresses<//></p>
    <${Failure} error=${error} again=${again} />
    ${loading && !address && html`<${Loading} />`}
    ${address && html`
      ${address.archived && html`<${Notice} tone="warn" title="Archived">It is hidden from the list. It is watched for ever:
        what arrives still counts.<//>`}
      <${Card}><${Facts} rows=${[
        ["Address", html`<${Code} value=${address.address} head=${12} tail=${10} what="address" />`],
        ["Receives on", address.affectedNetworks.join(", ")],
        ["Made for", address.coin?.toUpperCase()],
        ["Worth of what lies on it", address.totalBalanceUSD === null ? "Not known now" : fiat(address.totalBalanceUSD)],
        ["Made", html`<${Time} at=${address.createdAt} />`],
        ["Id", html`<${Code} value=${address.id} what="address id" />`],
      ]} />
      ${address.metadata && html`<details><summary>Metadata</summary><pre
        tabindex="0">${JSON.stringify(address.metadata, null, 2)}</pre></details>`}<//>
      <${Balances} path=${path} />
      ${can("transactions:read") && html`<${Card} title="Transactions"><${List} label="Transactions of this address"
        path=${`${path}/transactions`}
        columns=${COLUMNS} to=${(row) => at`/transactions/${row.id}`} every=${15}
        empty=${html`<${Empty} title="Nothing came yet">What is sent to it shows up here.<//>`} /><//>`}`}
  <//>`;
}

const PARTS = [
  { name: "coin", label: "Coin", show: (row) => `${row.symbol} on ${row.network}` },
  { name: "balance", label: "On it", align: "end", show: (row) =>
    html`<${Amount} value=${row.balance} symbol=${row.symbol} usd=${row.balanceUSD} />` },
  { name: "unconfirmed", label: "On its way", align: "end",
    show: (row) => html`<${Amount} value=${row.unconfirmed} symbol=${row.symbol} />` },
  { name: "frozen", label: "Held", align: "end", show: (row) => html`<${Amount} value=${row.frozen} symbol=${row.symbol} />` },
];

function Balances({ path }) {
  const { data, error, again } = useGet(`${path}/balances`, {}, { every: 30 });
  const there = data?.balances.filter((each) => ["balance", "unconfirmed", "frozen"].some((name) => !isZero(each[name]))) ?? [];
  return html`<${Card} title="What lies on it">
    <${Failure} error=${error} again=${again} />
    ${!data && !error && html`<${Loading} />`}
    ${data && there.length === 0 && html`<p class="soft">Nothing. What arrived may have been collected already: it is in your
      balances all the same.</p>`}
    ${there.length > 0 && html`<${Table} label="Balances of this address" columns=${PARTS} rows=${there}
      rowKey=${(row) => `${row.network}:${row.coin}`} />`}
  <//>`;
}

function Actions({ address, path, show }) {
  const [open, ask, close] = useDialog();
  const rename = async ({ label }) => (await put(path, { label: label ?? null })).data;
  return html`<${Button} tone="quiet" onClick=${() => ask("label")}>Change label<//>
    ${!address.archived && html`<${Button} tone="quiet" onClick=${() => ask("archive")}>Archive<//>`}
    ${open === "label" && html`<${Dialog} title="Change the label"
      close=${close}><${Form} action="Save" submit=${rename} cancel=${close}
      fields=${[{ name: "label", label: "Label", kind: "text", value: address.label, most: 200 }]}
        done=${(changed) => { show(changed); close(); }} /><//>`}
    ${open === "archive" && html`<${Ask} title="Archive this address?" action="Archive" close=${close}
      words="It is hidden from the list for good. It is watched for ever: what arrives still counts."
      run=${async () => show((await del(path)).data)} />`}`;
}
