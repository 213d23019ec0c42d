// Collections: balances on their way from deposit addresses to the service wallets.
import { at } from "../app/api.js";
import { List } from "../app/list.js";
import { Amount, Empty, Page, Status, Time } from "../app/parts.js";
import { shorten, words } from "../app/format.js";
import { html } from "../app/ui.js";
import { Command, useCoins, useNetworks } from "./shared.js";
import { collectionReason, realmOf } from "./words.js";

const STATUSES = ["planned", "waits_for_approval", "waiting", "topup_sent", "topup_confirmed", "sweep_sent", "parked", "swept",
  "dropped", "rejected"];
const TONES = { waits_for_approval: "warn", parked: "warn", waiting: "calm", swept: "good", rejected: "bad" };

/** A collection's status as a badge. */
export const CollectionStatus = ({ value }) => html`<${Status} value=${value} tone=${TONES[value]} />`;

/** The page "Collections". */
export default function Collections({ me }) {
  const networks = useNetworks();
  const coins = useCoins();
  const columns = [
    { name: "amount", label: "Amount", show: (row) => html`<${Amount} value=${row.amount} symbol=${row.coin} />` },
    { name: "network", label: "Network", sort: true },
    { name: "status", label: "Status", sort: true, show: (row) => html`<${CollectionStatus} value=${row.status} />` },
    { name: "reason", label: "Why", show: (row) => collectionReason(row.reason) },
    { name: "address", label: "From", show: (row) => html`<code title=${row.address}>${shorten(row.address)}</code>` },
    { name: "nextLookAt", label: "Next look", show: (row) => html`<${Time} at=${row.nextLookAt} ago=${true} />` },
    { name: "createdAt", label: "Begun", sort: true, show: (row) => html`<${Time} at=${row.createdAt} />` },
  ];
  const filters = [
    { name: "status", label: "Status", kind: "select", options: STATUSES.map((each) => [each, words(each)]) },
    { name: "network", label: "Network", kind: "select", options: networks },
    { name: "coin", label: "Coin", kind: "select", options: coins },
    { name: "address", label: "Deposit address", kind: "text" },
    { name: "createdAt", label: "Begun", kind: "time" },
  ];
  return html`<${Page} title="Collections"
    lead=${"What lies on deposit addresses, on its way to the service wallets. A coin is collected once one of its "
      + "thresholds is set."}>
    <${List} path="/collections" label="Collections" columns=${columns}
      filters=${filters} every=${30} to=${(row) => at`/collections/${row.id}`}
      empty=${html`<${Empty} title="Nothing is being collected">Collections begin by themselves after deposits of coins that are
        collected. To look at every address now:
        <${Command}>python -m infra.cli --stage STAGE collect --realm ${realmOf(me)} --network SLUG --coin COIN<//><//>`} />
  <//>`;
}
