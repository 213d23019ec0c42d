// One withdrawal: how it stands, what it waits for, its approval, and cancelling it.
import { at, del } from "../app/api.js";
import { Ask, useDialog } from "../app/dialog.js";
import { Amount, Button, Card, Code, Facts, Failure, Loading, Notice, Page, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { Approval } from "./approval.js";
import { TxHash } from "../catalogue/explorers.js";
import { FiatValue } from "../catalogue/fiat_value.js";
import { FINAL, says, waitsFor } from "./words.js";
import { State } from "./list.js";

/** The page of a withdrawal. */
export default function Withdrawal({ params }) {
  const { data: record, error, loading, again, put } = useGet(at`/withdrawals/${params.id}`, {}, { every: 15 });
  if (!record) {
    return html`<${Page} title="Withdrawal">${loading && html`<${Loading} />`}<${Failure} error=${error} again=${again} /><//>`;
  }
  const approval = record.approval && html`<${Approval} key="approval" record=${record} changed=${put} />`;
  return html`<${Page} title=${`Withdrawal of ${record.amount} ${record.coin.toUpperCase()}`} actions=${html`<${Actions}
    record=${record} put=${put} />`}>
    <${Failure} error=${error} again=${again} />
    <${Standing} record=${record} />
    ${record.status === "pending" && approval}
    <div class="columns">
      <${Card} title="Payment"><${Payment} record=${record} /><//>
      <${Card} title="On the chain"><${OnChain} record=${record} /><//>
    </div>
    ${record.status !== "pending" && approval}
  <//>`;
}

function Actions({ record, put }) {
  const [asked, ask, close] = useDialog();
  if (record.status !== "pending" || !can("withdrawals:write")) return null;
  return html`<${Button} tone="danger" onClick=${() => ask()}>Cancel<//>
    ${asked && html`<${Ask} title="Cancel this withdrawal?" action="Cancel the withdrawal" tone="danger"
      words=${`${record.amount} ${record.coin.toUpperCase()} are not paid to ${record.to_address}, and are available again.`}
      run=${() => del(at`/withdrawals/${record.id}`)} close=${(done) => { close(); if (done) put(done.data); }} />`}`;
}

function Standing({ record }) {
  const waits = waitsFor(record);
  if (waits) {
    return html`<${Notice} tone=${waits.tone}
      title=${waits.title}><p>${waits.words}</p><p><strong>What to do:</strong> ${waits.toDo}</p><//>`;
  }
  const { status, failure_reason: reason } = record;
  const tone = { confirmed: "good", failed: "bad", cancelled: "calm" }[status] ?? "busy";
  return html`<${Notice} tone=${tone} title=${`It ${says(status)}`}>
    ${reason && html`<p>${reason}</p>`}
    ${status === "failed" && html`<p>Look at the reason, then make a new withdrawal if you still want to pay.</p>`}
    ${!FINAL.includes(status) &&
      html`<p>${status === "pending" ? "You can cancel it until it begins." : "It can not be stopped any more."}${" "}
      This page looks again by itself.</p>`}<//>`;
}

function Payment({ record }) {
  return html`<${Facts} rows=${[
    ["Status", html`<${State} record=${record} />`],
    ["Amount", html`<${Amount} value=${record.amount} symbol=${record.coin} />`],
    ["To", html`<${Code} value=${record.to_address} what="address" head=${14} tail=${10} />`],
    ["Network", record.network],
    ["Network fee", html`<${Amount} value=${record.fee} symbol=${record.fee_coin} />`],
    ["Charged to you", record.fee_charged && html`<${Amount} value=${record.fee_charged} symbol=${record.coin} />`],
    ["Priority", record.priority],
    ["Asked for", html`<${Time} at=${record.created_at} ago />`],
    ["Part of a batch", record.batch_id && html`<${Code} value=${record.batch_id} what="batch" />`],
    ["Note", record.metadata && (record.metadata.note ?? JSON.stringify(record.metadata))],
    ["Refund", record.metadata?.refundId && html`<${Link}
      to=${at`/refunds/${record.metadata.refundId}`}>${record.metadata.refundId}<//>`],
    ["Id", html`<${Code} value=${record.id} what="id" />`],
  ]} />`;
}

function OnChain({ record }) {
  const { data: network } = useGet(can("networks:read") && record.transaction_hash ? at`/networks/${record.network}` : null);
  if (!record.transaction_hash) return html`<p class="soft">It was not sent yet. Its transaction shows up here.</p>`;
  return html`<${Facts} rows=${[
    ["Transaction", html`<${TxHash} network=${record.network} hash=${record.transaction_hash} />`],
    ["Confirmations", network ? `${record.confirmations} of ${network.confirmations}` : String(record.confirmations)],
    ["Block", record.block_number === undefined ? null : String(record.block_number)],
    ["Paid by", record.from_address && html`<${Code} value=${record.from_address} what="wallet" />`],
    ["Confirmed", record.confirmed_at && html`<${Time} at=${record.confirmed_at} ago />`],
    ["Worth when confirmed", record.fiat_value && html`<${FiatValue} value=${record.fiat_value} />`],
  ]} />`;
}

