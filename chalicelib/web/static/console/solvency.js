// Solvency: what the chains hold against what merchants have, and every place where chain and ledger differ.
import { newKey, post } from "../app/api.js";
import { amount, compare, countOf, words } from "../app/format.js";
import { Table } from "../app/list.js";
import { Amount, Button, Card, Code, Empty, Failure, Loading, Notice, Page, Progress, Status, Time } from "../app/parts.js";
import { go } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html, useRef, useState } from "../app/ui.js";
import { Command } from "./shared.js";
import { realmOf } from "./words.js";

const PHASES = { before: "adding up what merchants have", walk: "comparing addresses", again: "looking again at what differs",
  after: "adding up once more" };

/** The page "Solvency". */
export default function Solvency({ query, me }) {
  const asked = query.network ? { network: query.network, part: query.part } : {};
  const { data, error, loading, again } = useGet("/reconciliation", asked, { every: 15 });
  return html`<${Page} title="Solvency"
    lead=${"A run compares, coin by coin, what the ledger has at every address with the chain, and what the chain "
      + "holds with what merchants have."}
    actions=${can("networks:write") && html`<${Compare} done=${again} />`}>
    <${Failure} error=${error} again=${again} />
    ${loading && !data && html`<${Loading} />`}
    ${data && html`<${Verdict} report=${data} />`}
    ${data?.running.map((run) => html`<${Running} key=${run.network} run=${run} />`)}
    ${query.network && html`<p><button type="button" class="link" onClick=${() => go("/solvency")}>All networks</button></p>`}
    ${data?.networks.map((each) => html`<${Network} key=${each.network} report=${each} query=${query} />`)}
    ${data && html`<${Differences} differences=${data.differences} />`}
    <${Card} title="By the command line">
      <p class="fine">To compare here and now, and to book what a cold wallet's owner spent:</p>
      <${Command}>python -m infra.cli --stage STAGE reconcile --realm ${realmOf(me)}<//>
      <${Command}>python -m infra.cli --stage STAGE cold-adjust --realm ${realmOf(me)} --network SLUG --coin COIN --amount
        AMOUNT --reference TXID --reason WHY<//>
      <p class="fine">To check the whole store:</p><${Command}>python -m infra.cli --stage STAGE audit<//><//>
  <//>`;
}

function Compare({ done }) {
  const [busy, work] = useState(false);
  const [said, say] = useState(null);
  const [error, fail] = useState(null);
  const key = useRef(newKey());
  const order = async () => {
    work(true);
    fail(null);
    try {
      const { data } = await post("/reconciliation", {}, { key: key.current });
      key.current = newKey();
      say(`Ordered: ${data.message}. It begins within five minutes.`);
      done();
    } catch (failure) {
      fail(failure);
    } finally {
      work(false);
    }
  };
  return html`<${Button} busy=${busy} onClick=${order}>Compare now<//>
    ${said && html`<p role="status">${said}</p>`}<${Failure} error=${error} />`;
}

function Verdict({ report }) {
  if (report.networks.length === 0 && report.running.length === 0) {
    return html`<${Empty} title="Nothing was compared yet">${report.orderedAt
      ? html`A run was ordered <${Time} at=${report.orderedAt} ago=${true} />. It begins within five minutes.`
      : "One begins every day. Compare now, if you want to see it at once."}<//>`;
  }
  if (report.solvent === true) return html`<${Notice}
    tone="good" title="Solvent"><p>The chains hold at least what merchants have, of every coin on every network.</p><//>`;
  if (report.solvent === false) return html`<${Notice}
    tone="bad" title="Not solvent"><p>Of some coin the chain holds less than merchants have: look at the coins in red.</p><//>`;
  return html`<${Notice}
    tone="warn" title="Not known"><p>Not everything could be compared, or a report is older than two days.</p><//>`;
}

function Running({ run }) {
  return html`<${Card} title=${`${words(run.network)} is being compared`}>
    <${Progress}
      label=${`Comparing ${run.network}`}>
        ${countOf(run.places, "place")} compared: ${PHASES[run.phase]}. ${run.differences > 0
          && `${countOf(run.differences, "difference")} so far.`}<//>
    <p class="fine">Begun <${Time} at=${run.startedAt} ago=${true} />.</p>${run.trouble && html`<${Notice}
      tone="warn">${run.trouble}<//>`}<//>`;
}

const money = (value, coin) => html`<${Amount} value=${value} symbol=${coin} />`;
const figure = (value) => html`<${Amount} value=${value} />`;

function Network({ report, query }) {
  const columns = [
    { name: "coin", label: "Coin", show: (row) => row.coin.toUpperCase() },
    { name: "solvent", label: "Verdict", show: (row) => html`<${Solvent} value=${row.solvent} />` },
    { name: "chain", label: "Chain holds", align: "end", show: (row) => figure(row.chain) },
    { name: "liabilities", label: "Merchants have", align: "end", show: (row) => figure(row.liabilities) },
    { name: "operator", label: "Left for the operator", align: "end", show: (row) => figure(row.operator) },
    { name: "ledger", label: "Ledger", align: "end", show: (row) => figure(row.ledger) },
    { name: "difference", label: "Chain less expected", align: "end",
      show: (row) => html`<${Difference} value=${row.difference} />` },
  ];
  return html`<${Card} title=${words(report.network)} actions=${html`<${Solvent} value=${report.solvent} />`}>
    ${report.trouble && html`<${Notice} tone="warn" title="Not all of it could be read"><p>${report.trouble}</p><//>`}
    <${Table} label=${`${report.network}: coins`} columns=${columns} rows=${report.coins} rowKey=${(row) => row.coin} />
    <p class="fine">${countOf(report.places, "place")} compared${report.firstBlock !== null
      && ` at blocks ${amount(report.firstBlock)} to ${amount(report.lastBlock)}`},${" "}
      ${countOf(report.differences, "difference")}, ${countOf(report.notCompared, "place")} not compared.
      Finished <${Time} at=${report.finishedAt} ago=${true} />.</p>
    ${report.skipped.length > 0
      && html`<details><summary>Places that were not compared</summary><ul class="plain">${report.skipped.map(
      (each) => html`<li key=${each.address + each.coin}>
        ${each.coin.toUpperCase()} at <${Code} value=${each.address} />: ${each.why}</li>`)}</ul></details>`}
    ${report.parts > 1 && html`<${Parts} report=${report} query=${query} />`}<//>`;
}

function Parts({ report, query }) {
  const now = query.network === report.network ? Number(query.part ?? 1) : 1;
  const to = (part) => go("/solvency", { network: report.network, part: part > 1 ? part : undefined });
  return html`<nav class="actions" aria-label=${`Parts of the differences of ${report.network}`}>
    <p>Differences: part ${now} of ${report.parts}</p>
    ${now > 1 && html`<${Button} tone="quiet" onClick=${() => to(now - 1)}>Previous<//>`}${now < report.parts
      && html`<${Button} tone="quiet" onClick=${() => to(now + 1)}>Next<//>`}</nav>`;
}

function Solvent({ value }) {
  const [tone, label] = value === true ? ["good", "Solvent"] : value === false ? ["bad", "Not solvent"] : ["warn", "Not known"];
  return html`<${Status} value="" tone=${tone} label=${label} />`;
}

function Difference({ value, coin }) {
  const order = compare(value, "0");
  if (order === 0) return html`<span class="soft">none</span>`;
  return html`<span class=${order < 0 ? "wrong" : ""}><${Amount} value=${value} symbol=${coin} /></span>`;
}

function Differences({ differences }) {
  if (differences.length === 0) return null;
  const columns = [
    { name: "address", label: "Address", show: (row) => html`<${Code} value=${row.address} />` },
    { name: "network", label: "Network" },
    { name: "role", label: "What for", show: (row) => `${words(row.role)}${row.staked ? ", staked" : ""}` },
    { name: "expected", label: "Expected", align: "end", show: (row) => money(row.expected, row.coin) },
    { name: "chain", label: "Chain", align: "end", show: (row) => money(row.chain, row.coin) },
    { name: "difference", label: "Difference", align: "end",
      show: (row) => html`<${Difference} value=${row.difference} coin=${row.coin} />` },
    { name: "firstSeen", label: "First seen", show: (row) => html`<${Time} at=${row.firstSeen} ago=${true} />` },
  ];
  return html`<${Card} title="Where chain and ledger differ"><${Table} label="Differences"
    columns=${columns} rows=${differences}
    rowKey=${(row) => `${row.network}:${row.coin}:${row.address}:${row.staked}`} /><//>`;
}
