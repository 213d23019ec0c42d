// The columns of lists of transactions.
import { Amount, Status, Time } from "../app/parts.js";
import { shorten } from "../app/format.js";
import { html } from "../app/ui.js";
import { TYPES, flagOf, standing } from "./words.js";

const state = (row) => {
  const found = standing(row);
  const flags = row.flags.map(flagOf);
  return html`<span class="badges"><${Status} tone=${found.tone} label=${found.label} />${flags.map(
    ([tone, name]) => html`<${Status} key=${name} tone=${tone} label=${name} />`)}</span>`;
};

export const COLUMNS = [
  { name: "createdAt", label: "When", sort: true, show: (row) => html`<${Time} at=${row.createdAt} />` },
  { name: "type", label: "What", show: (row) => TYPES[row.type] ?? row.type },
  { name: "amount", label: "Amount", sort: true, align: "end",
    show: (row) => html`<${Amount} value=${row.amount} symbol=${row.symbol} />` },
  { name: "network", label: "Network" },
  { name: "status", label: "Status", show: state },
  { name: "hash", label: "Transaction", show: (row) => html`<code title=${row.hash}>${shorten(row.hash)}</code>` },
];
