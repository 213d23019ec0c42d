// Coins and tokens of this environment.
import { at } from "../app/api.js";
import { List } from "../app/list.js";
import { Code, Empty, Page, Status } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { html } from "../app/ui.js";
import { useNetworks } from "./shared.js";

/** The page "Coins". */
export default function Coins() {
  const networks = useNetworks();
  const columns = [
    { name: "symbol", label: "Coin", sort: true, show: (row) => `${row.symbol} on ${row.network.network}` },
    { name: "name", label: "Name", sort: true },
    { name: "type", label: "Type", sort: true, show: (row) => (row.type === "NATIVE" ? "The network's own" : "Token") },
    { name: "status", label: "Status", sort: true, show: (row) => html`<${Status} value=${row.status.toLowerCase()} />` },
    { name: "contractAddress", label: "Contract", show: (row) => html`<${Code} value=${row.contractAddress} />` },
  ];
  const filters = [
    { name: "network", label: "Network", kind: "select", options: networks },
    { name: "type", label: "Type", kind: "select", options: [["NATIVE", "The network's own"], ["TOKEN", "Token"]] },
    { name: "status", label: "Status", kind: "select", options: [["ACTIVE", "Active"], ["INACTIVE", "Inactive"]] },
    { name: "name", label: "Name", kind: "text", op: "like" },
    { name: "contractAddress", label: "Contract", kind: "text" },
  ];
  return html`<${Page} title="Coins" lead="What can be received and paid. Each coin has thresholds and limits of its own."
    actions=${can("coins:write") && html`<${Link} to="/coins/new" class="button">Register a coin<//>`}>
    <${List} path="/coins" plain=${true} label="Coins" columns=${columns} filters=${filters}
      rowKey=${(row) => `${row.network.network}:${row.coin}`}
      to=${(row) => at`/coins/${row.network.network}/${row.coin}`} empty=${html`<${Empty} title="No coin is registered" />`} />
  <//>`;
}
