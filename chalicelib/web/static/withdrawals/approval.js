// The approval of a withdrawal: who has agreed, and a signer's decision, signed in this tab.
import { at, get, put } from "../app/api.js";
import { Dialog, useDialog } from "../app/dialog.js";
import { words } from "../app/format.js";
import { Amount, Button, Card, Code, Facts, Failure, Loading, Notice, Time } from "../app/parts.js";
import { can } from "../app/session.js";
import { html, useEffect, useState } from "../app/ui.js";
import { SignDialog } from "../signing/dialog.js";
import { rejectionText, withdrawalText } from "../signing/texts.js";
import { findings } from "./words.js";

const REASONS = {
  multisig: "Your signers agree to large withdrawals", grey_list: "The address is on the operator's grey list",
  risk: "The operator looks at it because of a risk",
};

/** The card about a withdrawal's approval. `changed(record)` is told of the record after a decision. */
export function Approval({ record, changed }) {
  const [asked, ask, close] = useDialog();
  const { approval } = record;
  const signed = approval.reasons.includes("multisig");
  const asksOperator = approval.reasons.some((reason) => reason !== "multisig");
  const waiting = record.status === "pending" && signed && approval.signatures.length < approval.required_signatures;
  const decide = (record.status === "pending") && signed && !approval.given && can("withdrawals:write");
  return html`<${Card} title="Approval">
    <${Facts} rows=${[
      ["Why", approval.reasons.map((reason) => REASONS[reason] ?? words(reason)).join("; ")],
      ["Signatures", signed && `${approval.signatures.length} of ${approval.required_signatures}`],
      ["Operator", asksOperator && (approval.operator_accepted ? "has agreed" : "has not agreed yet")],
      ["Found", record.risk && findings(record.risk).join("; ")],
    ]} />
    ${signed && html`<ul class="plain" aria-label="Signers">${approval.signers.map((id) => html`<${Signer} key=${id} id=${id}
      approval=${approval} />`)}</ul>`}
    ${waiting && !can("withdrawals:write") &&
      html`<${Notice}>Signatures are handed in with a key that may approve (withdrawals:write).<//>`}
    ${decide && html`<div class="actions">
      <${Button} onClick=${() => ask("accept")}>Sign and accept<//>
      <${Button} tone="danger" onClick=${() => ask("reject")}>Sign and reject<//></div>`}
    ${asked && html`<${Deciding} id=${record.id} how=${asked} close=${(after) => { close(); if (after) changed(after); }} />`}
  <//>`;
}

function Signer({ id, approval }) {
  const signature = approval.signatures.find((one) => one.signer_id === id);
  return html`<li>${id}: ${signature ? html`signed <${Time} at=${signature.signed_at} ago />` : "has not signed"}</li>`;
}

/** Reads the record anew, makes the text of what it shows, and lets a signer sign exactly that. */
function Deciding({ id, how, close }) {
  const [{ record, error }, set] = useState({ record: null, error: null });
  useEffect(() => {
    get(at`/withdrawals/${id}`).then(({ data }) => set({ record: data }), (failure) => set({ record: null, error: failure }));
  }, [id]);
  const title = how === "accept" ? "Sign and accept" : "Sign and reject";
  if (!record) {
    return html`<${Dialog} title=${title} close=${() => close()}>${error ? html`<${Failure}
      error=${error} />` : html`<${Loading} />`}<//>`;
  }
  const { text, problem } = textFor(record, how);
  if (problem) return html`<${Dialog} title=${title} close=${() => close()}><${Notice} tone="bad"
    title="Do not sign this">${problem}<//><//>`;
  const signed = record.approval.signatures.map(({ signer_id: signer }) => signer);
  const send = async (signature) => {
    if (how === "accept" && signed.includes(signature.signer_id)) throw new Error(`${signature.signer_id} has signed already.`);
    close((await put(`/withdrawals/request/${how}`, { id: record.id, ...signature })).data);
  };
  return html`<${SignDialog} title=${title} text=${text} signers=${record.approval.signer_keys}
    action=${title} tone=${how === "accept" ? "main" : "danger"} done=${send} close=${close}>
    <${Facts} rows=${[
      ["Amount", html`<${Amount} value=${record.amount} symbol=${record.coin} />`],
      ["To", html`<code class="whole-address">${record.to_address}</code>`],
      ["Network", record.network],
      ["Asked for", html`<${Time} at=${record.created_at} ago />`],
      ["Found", record.risk && findings(record.risk).join("; ")],
      ["Id", html`<${Code} value=${record.id} what="id" />`],
    ]} />
    <p>${how === "accept"
      ? "Compare amount and address with what you know from elsewhere. Your signature lets this payment go."
      : "The withdrawal fails, and its money is available again."}</p><//>`;
}

/** The text that this page makes of a record. Where the service's own differs, nobody may sign. */
function textFor(record, how) {
  try {
    const text = withdrawalText(record);
    if (text !== record.approval?.signing_text) {
      return { problem: "The service asks to sign another text than this record. Nothing was signed. Tell the operator." };
    }
    return { text: how === "accept" ? text : rejectionText(text) };
  } catch (error) {
    return { problem: `${error.message}. Nothing was signed. Tell the operator.` };
  }
}
