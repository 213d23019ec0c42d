// One stray payment: what it is, and whether it is credited or sent back.
import { at, newKey, post } from "../app/api.js";
import { Ask, useDialog } from "../app/dialog.js";
import { amount } from "../app/format.js";
import { Button, Card, Code, Facts, Failure, Loading, Notice, Page, Status, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { TxHash } from "../catalogue/explorers.js";
import { html, useRef, useState } from "../app/ui.js";
import { Merchant } from "./shared.js";
import { StrayAmount, StrayStatus } from "./strays.js";

/** The page of one stray payment. */
export default function Stray({ params }) {
  const { data, error, loading, again } = useGet("/stray-payments", { id: params.id }, { every: 30 });
  const [decided, decide] = useState(null);
  const stray = decided ?? data?.[0];
  return html`<${Page} title="Stray payment">
    <${Failure} error=${error} again=${again} />
    ${loading && !stray && html`<${Loading} />`}
    ${data && !stray && html`<${Notice} tone="warn" title="There is no such payment here"
      actions=${html`<${Link} to="/strays" class="button quiet">All of them<//>`}>
      <p>It was never read, or it belongs to the other environment.</p><//>`}
    ${stray && html`<${One} stray=${stray} done=${decide} />`}
  <//>`;
}

function One({ stray, done }) {
  return html`
    ${stray.status === "open" ? html`<${Decide} stray=${stray} done=${done} />` : html`<${Decided} stray=${stray} />`}
    <${Card} title="Payment"><${Facts} rows=${[
      ["Amount", html`<${StrayAmount} stray=${stray} />`],
      ["Status", html`<${StrayStatus} value=${stray.status} />`],
      ["Network", stray.network],
      ["Token's contract", stray.contractAddress && html`<${Code} value=${stray.contractAddress} />`],
      ["From", html`<${Code} value=${stray.from} />`],
      ["To", html`<${Code} value=${stray.address} />`],
      ["Merchant of that address", html`<${Merchant} id=${stray.merchantId} />`],
      ["Transaction", html`<${TxHash} network=${stray.network} hash=${stray.txid} />`],
      ["Block", amount(stray.blockNumber)],
      ["Confirmations", `${amount(stray.confirmations)} of ${amount(stray.requiredConfirmations)}`],
      ["Recorded as", stray.transactionId
        && html`<${Code} value=${stray.transactionId} /> <${Status} value=${stray.transactionStatus} />`],
      ["Sent back to", stray.returnTo && html`<${Code} value=${stray.returnTo} />`],
      ["By the withdrawal", stray.withdrawalId && html`<${Code} value=${stray.withdrawalId} />`],
      ["Decided by", stray.decidedBy && html`<${Code} value=${stray.decidedBy} />`],
      ["Decided", stray.decidedAt && html`<${Time} at=${stray.decidedAt} />`],
      ["Read", html`<${Time} at=${stray.createdAt} />`],
      ["Id", html`<${Code} value=${stray.id} />`],
    ]} /><//>`;
}

function Decided({ stray }) {
  const words = {
    credit: "It is the merchant's: its block is scanned again, and it becomes an ordinary deposit.",
    return: "It is sent back once it lies in the hot wallet of its network.",
    recorded: "The service has it as an ordinary transaction: there is nothing to decide.",
  }[stray.status];
  return html`<${Notice} tone="good" title="Decided"><p>${words}</p>${stray.detail && html`<p>${stray.detail}</p>`}<//>`;
}

function Decide({ stray, done }) {
  const [asked, ask, close] = useDialog();
  const ended = (result) => {
    close();
    if (result) done(result);
  };
  if (stray.coin === null) {
    return html`<${Notice} tone="warn" title="Its token is not registered" actions=${can("coins:write")
      && html`<${Link} to="/coins/new"
      query=${{ network: stray.network, contract: stray.contractAddress }} class="button quiet">Register it<//>`}>
        <p>Only what is registered can be credited or sent back.</p><//>`;
  }
  return html`<${Notice} tone="warn" title="What shall become of it?" actions=${html`
      ${can("addresses:write") && html`<${Button} onClick=${() => ask("credit")}>Credit it to the merchant<//>`}
      ${can("withdrawals:create") && html`<${Button} tone="quiet" onClick=${() => ask("return")}>Send it back<//>`}`}>
      <p>The first decision counts, for ever.</p><//>
    ${asked === "credit" && html`<${Credit} stray=${stray} close=${ended} />`}
    ${asked === "return" && html`<${Return} stray=${stray} close=${ended} />`}`;
}

function Credit({ stray, close }) {
  const key = useRef(newKey());
  return html`<${Ask} title="Credit this payment?" action="Credit" typed=${stray.id} close=${close}
    run=${async () => (await post(at`/stray-payments/${stray.id}/credit`, undefined, { key: key.current })).data}
    words=${html`<p><${StrayAmount} stray=${stray} /> on ${stray.network} becomes an ordinary deposit of the merchant whose
      address it came to. It counts for no invoice.</p>`} />`;
}

function Return({ stray, close }) {
  const [to, write] = useState("");
  const key = useRef(newKey());
  const change = (event) => {
    key.current = newKey();
    write(event.currentTarget.value);
  };
  return html`<${Ask} title="Send this payment back?" action="Send it back" typed=${stray.id} close=${close}
    run=${async () => (await post(at`/stray-payments/${stray.id}/return`, { address: to.trim() }, { key: key.current })).data}
    words=${html`<p><${StrayAmount} stray=${stray} /> on ${stray.network} is credited to your own merchant, and all of it is
      withdrawn to this address.
      Ask the payer for it: an exchange's address that it came from may not take it.</p>`}>
    <div class="field"><label for="to">Address to send it to</label>
      <input id="to" type="text" class="mono" value=${to} autocomplete="off" spellcheck=${false}
        onInput=${change} /></div><//>`;
}
