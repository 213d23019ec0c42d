// What happened on the chains for the merchant.
import { at } from "../app/api.js";
import { List } from "../app/list.js";
import { Empty, Page } from "../app/parts.js";
import { html } from "../app/ui.js";
import { exportOf } from "../app/exports.js";
import { useNetworks } from "../catalogue/networks.js";
import { COLUMNS } from "./columns.js";
import { TYPES } from "./words.js";

const exportAs = exportOf("transactions");

const filters = (networks) => [
  { name: "type", label: "What", kind: "select", options: [["deposit", TYPES.deposit], ["withdrawal", TYPES.withdrawal]] },
  { name: "status", label: "Status", kind: "select",
    options: [["pending", "Not confirmed"], ["confirmed", "Confirmed"], ["failed", "Failed"],
      ["orphaned", "Fell out of the chain"]] },
  networks ? { name: "network", label: "Network", kind: "select", options: networks }
    : { name: "network", label: "Network", kind: "text" },
  { name: "coin", label: "Coin", kind: "text" },
  { name: "releasable", label: "Held back", kind: "select", options: [["true", "Waits for the operator"], ["false", "No"]] },
  { name: "hash", label: "Hash", kind: "text" },
  { name: "address", label: "Address", kind: "text" },
  { name: "createdAt", label: "When", kind: "time" },
];

/** The page "Transactions". */
export default function Transactions() {
  return html`<${Page} title="Transactions" lead="Every payment to your addresses, and every one that was made for you.">
    <${List} label="Transactions" path="/transactions" columns=${COLUMNS} filters=${filters(useNetworks())} every=${15}
      exportAs=${exportAs} to=${(row) => at`/transactions/${row.id}`}
        empty=${html`<${Empty} title="Nothing yet">What is paid to you shows up here.<//>`} />
  <//>`;
}
