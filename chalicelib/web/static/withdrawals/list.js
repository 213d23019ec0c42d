// The list of withdrawals.
import { at } from "../app/api.js";
import { List } from "../app/list.js";
import { Amount, Code, Empty, Page, Status, Time } from "../app/parts.js";
import { words } from "../app/format.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { html } from "../app/ui.js";
import { exportOf } from "../app/exports.js";
import { STATUSES, WAITS } from "./words.js";

const named = (values) => values.map((value) => [value, words(value)]);

/** The columns that lists of withdrawals have. */
export const COLUMNS = [
  { name: "id", label: "Withdrawal", show: (row) => html`<${Amount} value=${row.amount} symbol=${row.coin} />` },
  { name: "status", label: "Status", sort: true, show: (row) => html`<${State} record=${row} />` },
  { name: "to_address", label: "To", show: (row) => html`<${Code} value=${row.to_address} what="address" />` },
  { name: "network", label: "Network", sort: true, show: (row) => html`<span class="one-line">${row.network}</span>` },
  { name: "created_at", label: "Made", sort: true, show: (row) => html`<${Time} at=${row.created_at} />` },
];

/** A withdrawal's status, with what it waits for. */
export function State({ record }) {
  const waits = record.status === "pending" && record.pending_reason;
  return html`<${Status} value=${record.status} tone=${waits ? "warn" : undefined}
    label=${waits ? `Waits: ${words(record.pending_reason).toLowerCase()}` : undefined} />`;
}

const FILTERS = [
  { name: "status", label: "Status", kind: "select", options: named(STATUSES) },
  { name: "pending_reason", label: "Waits for", kind: "select", options: named(WAITS) },
  { name: "coin", label: "Coin", kind: "text" },
  { name: "network", label: "Network", kind: "text" },
  { name: "to_address", label: "To address", kind: "text" },
  { name: "created_at", label: "Made", kind: "time" },
];

const exportAs = exportOf("withdrawals");

/** The page "Withdrawals". */
export default function Withdrawals() {
  const making = can("withdrawals:create");
  const actions = making && html`<${Link} to="/withdrawals/new" class="button">New withdrawal<//>
    ${can("addresses:read") && can("coins:read") && html`<${Link} to="/withdrawals/batch"
      class="button quiet">Pay from a file<//>`}`;
  const empty = html`<${Empty} title="No withdrawals yet"
    actions=${making && html`<${Link} to="/withdrawals/new" class="button">New withdrawal<//>`}>
    Money that you send from your balance to an address shows up here.<//>`;
  return html`<${Page} title="Withdrawals" actions=${actions}>
    <${List} label="Withdrawals" path="/withdrawals" columns=${COLUMNS} filters=${FILTERS}
      to=${(row) => at`/withdrawals/${row.id}`}
      exportAs=${exportAs} empty=${empty} every=${30} /><//>`;
}
