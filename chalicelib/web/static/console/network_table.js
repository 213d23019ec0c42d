// The networks as a table: how far each is scanned, and how it stands.
import { at } from "../app/api.js";
import { amount } from "../app/format.js";
import { Table } from "../app/list.js";
import { Status, Time } from "../app/parts.js";
import { html } from "../app/ui.js";
import { standing } from "./words.js";

/** A network's standing as a badge, with its words. */
export function Standing({ network, wordy = false }) {
  const { state, tone, words } = standing(network, Date.now());
  return html`<${Status} value="" tone=${tone} label=${state} />${wordy && words && html` <span class="soft">${words}</span>`}`;
}

/** All networks; `brief`: without what a closer look is for. */
export function Networks({ networks, brief = false }) {
  const columns = [
    { name: "name", label: "Network" },
    { name: "standing", label: "Standing", show: (row) => html`<${Standing} network=${row} wordy=${true} />` },
    { name: "lastBlock", label: "Last block", align: "end",
      show: (row) => (row.lastBlock === null ? "none" : amount(row.lastBlock)) },
    { name: "lag", label: "Behind", align: "end", show: (row) => lag(row) },
  ];
  if (!brief) {
    columns.push(
      { name: "lastBlockAt", label: "Its time", show: (row) => html`<${Time} at=${row.scan?.lastBlockAt} ago=${true} />` },
      { name: "nodes", label: "Nodes", align: "end", show: (row) => nodes(row) },
      { name: "polledAt", label: "Last report", show: (row) => (row.scan?.polledAt
        ? html`<${Time} at=${row.scan.polledAt} ago=${true} />`
          : html`<span class="soft">${row.isTestnet ? "simulated" : "none yet"}</span>`) },
    );
  }
  return html`<${Table} label="Networks" columns=${columns} rows=${networks}
    rowKey=${(row) => row.network} to=${(row) => at`/networks/${row.network}`} />`;
}

function lag(row) {
  const blocks = row.scan?.lagBlocks;
  if (blocks === null || blocks === undefined) return html`<span class="soft">unknown</span>`;
  return html`<span class="nowrap">${amount(blocks)} ${blocks === 1 ? "block" : "blocks"}</span>`;
}

function nodes(row) {
  const all = row.scan?.nodes ?? [];
  if (all.length === 0) return html`<span class="soft">none</span>`;
  return html`<span class="nowrap">
    ${all.filter((node) => ["well", "unasked"].includes(node.state)).length} of ${all.length} well</span>`;
}
