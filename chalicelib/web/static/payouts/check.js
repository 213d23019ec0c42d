// What was found in a file of payouts, what it comes to, and the button that begins the run.
import { newKey } from "../app/api.js";
import { Ask, useDialog } from "../app/dialog.js";
import { amount, countOf } from "../app/format.js";
import { Table } from "../app/list.js";
import { Amount, Button, Card, Notice, Page } from "../app/parts.js";
import { Link } from "../app/router.js";
import { me } from "../app/session.js";
import { html, useState } from "../app/ui.js";
import { checked } from "./file.js";
import { runOf, sha256 } from "./run.js";

const DRAWN = 100;

/** What is wrong, what it comes to, and the button that sends. */
export function Check({ plan, begin, back }) {
  const [left, leave] = useState(false);
  const [twice, choose] = useState(null); // what becomes of rows that were paid lately: "again" or "out"
  const [asked, ask, close] = useDialog();
  const all = checked(plan.rows, plan.facts);
  const again = all.rows.filter((row) => row.problems.length === 0 && row.before);
  const without = new Set(twice === "out" ? again.map(({ row }) => row) : []);
  const found = without.size === 0 ? all : checked(plan.rows.filter(({ row }) => !without.has(row)), plan.facts);
  const wrong = found.rows.filter((row) => row.problems.length > 0);
  const good = found.rows.filter((row) => row.problems.length === 0);
  const alike = good.filter((row) => row.warnings.length > 0);
  const short = found.totals.filter((total) => total.problem);
  const ready = good.length > 0 && (wrong.length === 0 || left) && (again.length === 0 || twice) && short.length === 0;
  // Paid again on purpose: other keys than the first time, and the same ones for each further try of this.
  const salt = (twice === "again" && again.map((row) => row.before.id).sort().at(-1)) || "";
  const rows = all.rows.filter((row) => row.problems.length === 0).map(bare);
  const start = () => runOf({ ...plan, salt, without, rows, by: me().key_id }, sha256, newKey);
  const sums = found.totals.map((total) => `${amount(total.total)} ${total.symbol} on ${total.network}`).join(", ");
  return html`<${Page} title="Check before you send" actions=${html`<${Button} tone="quiet" onClick=${back}>Another file<//>`}>
    ${plan.ignored.length > 0 && html`<${Notice} tone="calm" title="Columns that nothing reads">${plan.ignored.join(", ")}<//>`}
    ${wrong.length > 0 && html`<${Notice} tone="bad" title=${`${countOf(wrong.length, "row is", "rows are")} wrong`}>
      <p>Mend them in your file and open it again, or leave them out.</p>
      <${Tick} checked=${left} change=${leave}>Leave the wrong rows out and pay the others<//><//>`}
    ${again.length > 0 && html`<${Notice} tone="warn"
      title=${`${countOf(again.length, "row was", "rows were")} paid within the last day`}>
      <p>The same amount went, or is going, to the same address: rows ${listed(again)}.</p>
      <${Tick} checked=${twice === "out"} change=${(on) => choose(on ? "out" : null)}>Leave them out and pay the others<//>
      <${Tick} checked=${twice === "again"} change=${(on) => choose(on ? "again" : null)}>Pay them again<//><//>`}
    ${alike.length > 0 && html`<${Notice} tone="warn"
      title="Addresses that are there several times">Rows ${listed(alike)}. Each is paid.<//>`}
    ${short.map((total) => html`<${Notice} tone="bad" title=${`${total.symbol} on ${total.network}: ${total.problem}`}>
      ${total.left === null ? "Take rows out, or wait for more money." : "Take rows out, or send them another day."}<//>`)}
    <${Card} title="What it comes to"><${Table} label="Sums" rows=${found.totals}
      rowKey=${(row) => `${row.coin} ${row.network}`} columns=${TOTALS} />
      <p class="fine">Payees get these amounts whole: network fees are not taken off.
        Whether payments need approvals the service says when they are made.</p><//>
    <div class="actions">
      <${Button} disabled=${!ready} onClick=${() => ask()}>Send ${countOf(good.length, "payment")}<//>
      <${Link} to="/withdrawals" class="button quiet">Do not send<//></div>
    <${Rows} rows=${wrong.length > 0 ? wrong : found.rows} title=${wrong.length > 0 ? "Rows that are wrong" : "Rows"} />
    ${asked && html`<${Ask} title=${`Send ${countOf(good.length, "payment")}?`} action="Send them"
      words=${`${sums}. What the chain has can not be taken back.`}
      run=${start} close=${(run) => { close(); if (run) begin(run); }} />`}
  <//>`;
}

/** What of a row is needed from now on. */
const bare = ({ problems, warnings, before, ...row }) => row;

function listed(rows) {
  const shown = rows.slice(0, 20).map(({ row }) => row).join(", ");
  return rows.length > 20 ? `${shown} and ${rows.length - 20} more` : shown;
}

function Tick({ checked: on, change, children }) {
  return html`<label class="check"><input type="checkbox" checked=${on}
    onChange=${(event) => change(event.currentTarget.checked)} /><span>${children}</span></label>`;
}

const TOTALS = [
  { name: "coin", label: "Coin", show: (row) => `${row.symbol} on ${row.network}` },
  { name: "count", label: "Payments", align: "end", show: (row) => amount(row.count) },
  { name: "total", label: "Sum", align: "end", show: (row) => html`<${Amount} value=${row.total} symbol=${row.symbol} />` },
  { name: "available", label: "Available", align: "end", show: (row) => (row.available === null ? "not known" : html`<${Amount}
    value=${row.available} symbol=${row.symbol} />`) },
  { name: "left", label: "Left after", align: "end", show: (row) => (row.left === null ? "" : html`<${Amount} value=${row.left}
    symbol=${row.symbol} />`) },
];
const ROWS = [
  { name: "row", label: "Row" },
  { name: "address", label: "Address", show: (row) => html`<code class="whole-address">${row.address}</code>` },
  { name: "amount", label: "Amount", align: "end", show: (row) => html`<${Amount} value=${row.amount} symbol=${row.coin} />` },
  { name: "network", label: "Network", show: (row) => html`<span class="one-line">${row.network}</span>` },
  { name: "problems", label: "Found", show: (row) => [...row.problems, ...row.warnings].join("; ") || "nothing" },
];

function Rows({ rows, title }) {
  const [pages, more] = useState(1);
  const shown = rows.slice(0, pages * DRAWN);
  return html`<${Card} title=${`${title} (${amount(rows.length)})`}>
    <${Table} label=${title} rows=${shown} rowKey=${(row) => row.row} columns=${ROWS} />
    ${shown.length < rows.length && html`<div class="actions"><${Button} tone="quiet"
      onClick=${() => more(pages + 1)}>Show more<//></div>`}<//>`;
}
