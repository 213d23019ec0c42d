// One collection, and the operator's decision about it.
import { at, put } from "../app/api.js";
import { Ask, useDialog } from "../app/dialog.js";
import { Amount, Button, Card, Code, Facts, Failure, Loading, Notice, Page, Time } from "../app/parts.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { TxHash } from "../catalogue/explorers.js";
import { html, useState } from "../app/ui.js";
import { CollectionStatus } from "./collections.js";
import { collectionDecisions, collectionReason } from "./words.js";

const ACTIONS = {
  approve: { action: "Approve",
    words: "It goes on with the amount that it has now. What comes to the address later is left for the next one.",
    typed: true },
  reject: { action: "Reject", words: "It ends. The next deposit to the address asks again.", tone: "danger" },
  retry: { action: "Look again", words: "It is looked at again at once, with the settings, fees and balances of now." },
};

/** The page of one collection. */
export default function Collection({ params }) {
  const { data, error, loading, again, put: show } = useGet(at`/collections/${params.id}`, {}, { every: 15 });
  return html`<${Page} title="Collection">
    <${Failure} error=${error} again=${again} />
    ${loading && !data && html`<${Loading} />`}
    ${data && html`<${One} one=${data} show=${show} />`}
  <//>`;
}

function One({ one, show }) {
  const [asked, ask, close] = useDialog();
  const decisions = can("addresses:write") ? collectionDecisions(one.status) : [];
  const ended = (result) => {
    close();
    if (result) show(result);
  };
  const why = [collectionReason(one.reason), one.detail].filter(Boolean).join(": ");
  return html`
    ${decisions.length > 0 && html`<${Notice}
      tone=${one.status === "waiting" ? "calm" : "warn"}
      title=${one.status === "waits_for_approval"
        ? "It waits for your word" : `It ${one.status === "parked" ? "is parked" : "waits"}`}
      actions=${decisions.map((name) => html`<${Button} key=${name} tone=${name === "approve" ? "main" : "quiet"}
        onClick=${() => ask(name)}>${ACTIONS[name].action}<//>`)}>
      <p>${why || (one.status === "waits_for_approval" ? "It is more than the coin's approveThreshold." : "")}</p><//>`}
    <${Card} title="Collection"><${Facts} rows=${[
      ["Amount", html`<${Amount} value=${one.amount} symbol=${one.coin} />`],
      ["Status", html`<${CollectionStatus} value=${one.status} />`],
      ["Why", why],
      ["Network", one.network],
      ["From", html`<${Code} value=${one.address} />`],
      ["To", one.destination && html`<${Code} value=${one.destination} />`],
      ["Transaction", html`<${TxHash} network=${one.network} hash=${one.hash} />`],
      ["Arrived", one.arrived && html`<${Amount} value=${one.arrived} symbol=${one.coin} />`],
      ["Fee, as last seen", html`<${Amount} value=${one.fee} symbol=${one.feeCoin} />`],
      ["Brought for fees", html`<${Amount} value=${one.toppedUp} symbol=${one.feeCoin} />`],
      ["Moves", one.topups.length + one.sweeps.length > 0
        && [...one.topups, ...one.sweeps].map((id) => html`<div key=${id}><${Code} value=${id} /></div>`)],
      ["Decided by", one.decidedBy && html`<${Code} value=${one.decidedBy} />`],
      ["Decided", one.decidedAt && html`<${Time} at=${one.decidedAt} />`],
      ["Note", one.note],
      ["Next look", one.nextLookAt && html`<${Time} at=${one.nextLookAt} ago=${true} />`],
      ["Begun", html`<${Time} at=${one.createdAt} />`],
      ["Changed", html`<${Time} at=${one.updatedAt} ago=${true} />`],
      ["Ended", one.endedAt && html`<${Time} at=${one.endedAt} />`],
      ["Id", html`<${Code} value=${one.id} />`],
    ]} /><//>
    ${asked && html`<${Decide} one=${one} action=${asked} close=${ended} />`}`;
}

function Decide({ one, action, close }) {
  const [note, write] = useState("");
  const known = ACTIONS[action];
  const run = async () =>
    (await put(at`/collections/${one.id}`, note.trim() ? { action, reason: note.trim() } : { action })).data;
  return html`<${Ask} title=${`${known.action}?`} action=${known.action} tone=${known.tone}
    typed=${known.typed ? one.id : undefined} run=${run} close=${close}
    words=${html`<p><${Amount} value=${one.amount} symbol=${one.coin} /> on ${one.network}</p><p>${known.words}</p>`}>
    <div class="field"><label for="note">Note <span class="soft">(optional)</span></label>
      <input id="note" type="text" maxlength="200" value=${note} autocomplete="off"
        onInput=${(event) => write(event.currentTarget.value)} /></div><//>`;
}
