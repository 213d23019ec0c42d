// Withdrawals that wait for somebody: signers find theirs here.
import { at } from "../app/api.js";
import { List } from "../app/list.js";
import { Empty, Notice, Page } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { html } from "../app/ui.js";
import { COLUMNS } from "./list.js";

/** What one waits for, in a few words. */
function waiting({ approval, pending_reason: reason }) {
  if (!approval) return reason === "fees" ? "A lower network fee" : "The operator";
  const left = approval.required_signatures - approval.signatures.length;
  const operator = approval.reasons.some((each) => each !== "multisig") && !approval.operator_accepted;
  const signed = `${approval.signatures.length} of ${approval.required_signatures} signatures`;
  const parts = [left > 0 && signed, operator && "the operator"];
  return parts.filter(Boolean).join(", and ") || "Its turn";
}

const WAITS = { name: "waits", label: "Waits for", show: waiting };
const SIGNED = {
  name: "signed", label: "Signed by",
  show: ({ approval }) => approval?.signatures.map(({ signer_id: id }) => id).join(", ") || "nobody",
};
const SHOWN = [...COLUMNS.filter(({ name }) => name !== "status"), WAITS, SIGNED];
const FILTERS = [
  { name: "coin", label: "Coin", kind: "text" },
  { name: "network", label: "Network", kind: "text" },
  { name: "to_address", label: "To address", kind: "text" },
];

/** The page "Approvals". */
export default function Approvals() {
  return html`<${Page} title="Approvals"
    lead="Withdrawals that wait for a signature of your signers, or for the operator. Open one to look at it and sign.">
    ${!can("withdrawals:write") &&
      html`<${Notice}>This key may look, and not hand in signatures: that needs withdrawals:write.<//>`}
    <${List} label="Withdrawals that wait" path="/withdrawals/requests" columns=${SHOWN} filters=${FILTERS} every=${15}
      to=${(row) => at`/withdrawals/${row.id}`}
      empty=${html`<${Empty} title="Nothing waits for you" actions=${can("merchant:read")
        && html`<${Link} to="/signers"
          class="button quiet">Who has to sign<//>`}>
        Large withdrawals show up here until enough signers have agreed.<//>`} /><//>`;
}
