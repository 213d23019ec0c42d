// Moves under way between our own addresses.
import { at } from "../app/api.js";
import { List } from "../app/list.js";
import { Amount, Code, Empty, Page, Status, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { words } from "../app/format.js";
import { TxHash } from "../catalogue/explorers.js";
import { html } from "../app/ui.js";
import { useCoins, useNetworks } from "./shared.js";

const KINDS = ["topup", "sweep", "distribution", "cold", "drain", "delegation", "undelegation", "filler", "consolidation"];
const STATUSES = { planned: "calm", built: "calm", signed: "busy", replacing: "warn", lost: "bad" };
const NAMES = {
  topup: "Top-up for fees", sweep: "Sweep", distribution: "To the hot wallet", cold: "To the cold wallet",
  drain: "Out of a replaced wallet",
  delegation: "Energy lent", undelegation: "Energy taken back", filler: "Nonce filler", consolidation: "Consolidation",
};

/** The page "Moves under way". */
export default function Moves() {
  const networks = useNetworks();
  const coins = useCoins();
  const columns = [
    { name: "amount", label: "Amount", sort: true, show: (row) => html`<${Amount} value=${row.amount} symbol=${row.coin} />` },
    { name: "kind", label: "What", sort: true, show: (row) => NAMES[row.kind] ?? words(row.kind) },
    { name: "network", label: "Network", sort: true },
    { name: "status", label: "Status", sort: true, show: (row) => html`<${Status} value=${row.status}
      tone=${STATUSES[row.status]} />${
      row.reason && html` <span class="soft">${row.reason}</span>`}` },
    { name: "from", label: "From", show: (row) => (row.from ? html`<${Code} value=${row.from} />`
      : html`<span class="soft">several addresses</span>`) },
    { name: "to", label: "To", show: (row) => html`<${Code} value=${row.to} />` },
    { name: "hash", label: "Transaction", show: (row) => html`<${TxHash} network=${row.network} hash=${row.hash} />` },
    { name: "owner", label: "For", show: (row) => (row.owner.startsWith("col_")
      ? html`<${Link} to=${at`/collections/${row.owner}`}>a collection<//>` : html`<span class="soft">the treasury</span>`) },
    { name: "createdAt", label: "Planned", sort: true, show: (row) => html`<${Time} at=${row.createdAt} ago=${true} />` },
  ];
  const filters = [
    { name: "kind", label: "What", kind: "select", options: KINDS.map((each) => [each, NAMES[each]]) },
    { name: "status", label: "Status", kind: "select", options: Object.keys(STATUSES).map((each) => [each, words(each)]) },
    { name: "network", label: "Network", kind: "select", options: networks },
    { name: "coin", label: "Coin", kind: "select", options: coins },
  ];
  return html`<${Page} title="Moves under way"
    lead=${"Our own transactions between deposit addresses and service wallets that are not at their end. Those "
      + "that are, the transactions show."}>
    <${List} path="/moves" plain=${true} label="Moves" columns=${columns} filters=${filters} every=${15}
      empty=${html`<${Empty} title="Nothing is under way">Sweeps, top-ups and transfers to the cold wallet show up here while
        they are on their way.<//>`} />
  <//>`;
}
