// One withdrawal that waits: why, what was found about it, and the operator's decision.
import { put } from "../app/api.js";
import { Ask, useDialog } from "../app/dialog.js";
import { Amount, Button, Card, Code, Facts, Failure, Loading, Notice, Page, Status, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html, useState } from "../app/ui.js";
import { Merchant } from "./shared.js";
import { REASONS, findingOf, mayAccept, mayReject, waitOf } from "./words.js";

/** The page of one withdrawal. */
export default function Withdrawal({ params }) {
  const { data, error, loading, again } = useGet("/withdrawals/requests",
    { id: params.id, "pending_reason[in]": REASONS.join(",") }, { every: 15 });
  const [decided, decide] = useState(null);
  const shown = decided ?? data?.[0];
  return html`<${Page} title="Withdrawal">
    <${Failure} error=${error} again=${again} />
    ${loading && !data && !decided && html`<${Loading} />`}
    ${data && !shown && html`<${Notice} tone="calm" title="It does not wait any more"
      actions=${html`<${Link} to="/withdrawals" class="button quiet">All that wait<//>`}>
      <p>It was paid, cancelled or decided about meanwhile, or it never was here. What becomes of it is its
        merchant's to see.</p>
      <p><${Code} value=${params.id} /></p><//>`}
    ${shown && html`<${One} withdrawal=${shown} decided=${decided !== null} done=${decide} />`}
  <//>`;
}

function One({ withdrawal, decided, done }) {
  return html`
    ${decided ? html`<${Outcome} withdrawal=${withdrawal} />` : html`<${Wait} withdrawal=${withdrawal} done=${done} />`}
    <${Card} title="What was asked for"><${Facts} rows=${[
      ["Amount", html`<${Amount} value=${withdrawal.amount} symbol=${withdrawal.coin} />`],
      ["Network", withdrawal.network],
      ["To", html`<${Code} value=${withdrawal.to_address} head=${42} what="address" />`],
      ["Fee, estimated", html`<${Amount} value=${withdrawal.fee} symbol=${withdrawal.fee_coin} />`],
      ["Priority", withdrawal.priority],
      ["Merchant", html`<${Merchant} id=${withdrawal.merchant_id} />`],
      ["Batch", withdrawal.batch_id],
      ["Asked for", html`<${Time} at=${withdrawal.created_at} ago=${true} />`],
      ["Changed", html`<${Time} at=${withdrawal.updated_at} ago=${true} />`],
      ["Id", html`<${Code} value=${withdrawal.id} />`],
    ]} /><//>
    ${withdrawal.risk?.findings?.length > 0
      && html`<${Card} title="What was found"><ul class="plain">${withdrawal.risk.findings.map(
      (each) => html`<li key=${each.name}>${findingOf(each)} <span class="soft">(${each.weight})</span></li>`)}</ul>
      <p class="fine">Together ${withdrawal.risk.score}.</p><//>`}
    ${withdrawal.approval && html`<${Approval} approval=${withdrawal.approval} />`}`;
}

function Outcome({ withdrawal }) {
  if (withdrawal.status === "failed") return html`<${Notice}
    tone="calm" title="Rejected"><p>The money is available to its merchant again.</p><//>`;
  if (withdrawal.approval && !withdrawal.approval.given) {
    return html`<${Notice}
      tone="busy" title="Your word is given"><p>The merchant's signers have to agree, too. Then it is paid.</p><//>`;
  }
  return html`<${Notice} tone="good" title="It goes on"><p>The payment begins within a minute.</p><//>`;
}

function Wait({ withdrawal, done }) {
  const { title, words } = waitOf(withdrawal);
  const accept = can("withdrawals:write") && mayAccept(withdrawal);
  const reject = can("withdrawals:write") && mayReject(withdrawal);
  const [asked, ask, close] = useDialog();
  const ended = (result) => {
    close();
    if (result) done(result);
  };
  return html`<${Notice} tone=${mayAccept(withdrawal) ? "warn" : "calm"} title=${title} actions=${html`
      ${accept && html`<${Button} onClick=${() => ask("accept")}>Let it go<//>`}
      ${reject && html`<${Button} tone="quiet" onClick=${() => ask("reject")}>Reject<//>`}
      ${withdrawal.pending_reason === "liquidity" && html`<${Link} to="/wallets"
        query=${{ network: withdrawal.network }} class="button quiet">The hot wallet<//>`}
      ${withdrawal.pending_reason === "halted" && html`<${Link} to="/payments" class="button quiet">Kill switch<//>`}
      ${withdrawal.pending_reason === "suspended"
        && html`<${Link} to=${`/merchants/${withdrawal.merchant_id}`} class="button quiet">The merchant<//>`}`}>
      <p>${words}</p>
      ${mayAccept(withdrawal) && !accept && html`<p>This key may not decide about withdrawals.</p>`}<//>
    ${asked === "accept" && html`<${Accept} withdrawal=${withdrawal} close=${ended} />`}
    ${asked === "reject" && html`<${Reject} withdrawal=${withdrawal} close=${ended} />`}`;
}

function Accept({ withdrawal, close }) {
  const run = async () =>
    ({ ...(await put("/withdrawals/request/accept", { id: withdrawal.id })).data, merchant_id: withdrawal.merchant_id });
  return html`<${Ask} title="Let this withdrawal go?" action="Let it go" typed=${withdrawal.id} run=${run} close=${close}
    words=${html`
    <p><${Amount} value=${withdrawal.amount} symbol=${withdrawal.coin} /> on ${withdrawal.network} to <code>
      ${withdrawal.to_address}</code></p>
    <p>Once it is paid nobody can take it back.${withdrawal.pending_reason === "fees"
      && " It is paid whatever its fee is by then."}</p>`} />`;
}

function Reject({ withdrawal, close }) {
  const [reason, write] = useState("");
  const run = async () => {
    const body = reason.trim() ? { id: withdrawal.id, reason: reason.trim() } : { id: withdrawal.id };
    return { ...(await put("/withdrawals/request/reject", body)).data, merchant_id: withdrawal.merchant_id };
  };
  return html`<${Ask} title="Reject this withdrawal?" action="Reject" tone="danger" run=${run} close=${close}
    words="It fails, and the money is available to its merchant again. The merchant sees the reason.">
    <div class="field"><label for="why">Reason <span class="soft">(optional)</span></label>
      <input id="why" type="text" maxlength="200" value=${reason} autocomplete="off"
        onInput=${(event) => write(event.currentTarget.value)} /></div><//>`;
}

function Approval({ approval }) {
  const signed = new Set(approval.signatures.map((each) => each.signer_id));
  return html`<${Card} title="Who has to agree"><ul class="plain">
    ${approval.reasons.includes("multisig")
      && approval.signers.map((each) => html`<li key=${each}>Signer ${each}: <${Status} value=""
      tone=${signed.has(each) ? "good" : "calm"} label=${signed.has(each) ? "signed" : "not yet"} /></li>`)}
    ${approval.reasons.some((each) => each !== "multisig") && html`<li>The operator: <${Status} value=""
      tone=${approval.operator_accepted ? "good" : "warn"}
      label=${approval.operator_accepted ? "agreed" : "not yet"} /></li>`}
  </ul>${approval.reasons.includes("multisig")
    && html`<p class="fine">${approval.signatures.length} of ${approval.required_signatures} signatures are there.</p>`}<//>`;
}
