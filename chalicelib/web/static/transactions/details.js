// One transaction: how far it is, what its flags mean, where it can be looked at.
import { at } from "../app/api.js";
import { fiat, isZero } from "../app/format.js";
import { Amount, Card, Code, Facts, Failure, Loading, Notice, Page, Progress, Status, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { TxHash } from "../catalogue/explorers.js";
import { TYPES, flagOf, standing } from "./words.js";

/** The page of a transaction. */
export default function Transaction({ params }) {
  const { data: found, error, loading, again } = useGet(at`/transactions/${params.id}`, {}, { every: 15 });
  return html`<${Page} title=${found ? TYPES[found.type] ?? found.type : "Transaction"}>
    <p class="fine"><${Link} to="/transactions">All transactions<//></p>
    <${Failure} error=${error} again=${again} />
    ${loading && !found && html`<${Loading} />`}
    ${found && html`<${State} found=${found} /><${Details} found=${found} />`}
  <//>`;
}

function State({ found }) {
  const { tone, label, why } = standing(found);
  const counting = found.status === "pending" && found.blockNumber !== null;
  return html`
    ${why && html`<${Notice} tone=${tone} title=${label}>${why}
      ${counting && html`<${Progress} value=${found.confirmations} max=${found.requiredConfirmations} label="Confirmations"
        />`}<//>`}
    ${found.flags.map((flag) => {
      const [own, name, words] = flagOf(flag);
      return html`<${Notice} key=${flag} tone=${own} title=${name}>${words}<//>`;
    })}`;
}

function Details({ found }) {
  const { tone, label } = standing(found);
  const value = found.fiatValue;
  const invoice = found.invoiceId && (can("invoices:read")
    ? html`<${Link} to=${at`/invoices/${found.invoiceId}`}><code>${found.invoiceId}</code><//>`
    : html`<code>${found.invoiceId}</code>`);
  const withdrawal = found.withdrawalId && (can("withdrawals:read")
    ? html`<${Link} to=${at`/withdrawals/${found.withdrawalId}`}><code>${found.withdrawalId}</code><//>`
    : html`<code>${found.withdrawalId}</code>`);
  return html`<${Card}><${Facts} rows=${[
    ["Amount", html`<span class="big"><${Amount} value=${found.amount} symbol=${found.symbol} /></span>`],
    ["Worth when it was paid", value && `${fiat(value.amount, value.currency)} (${value.source})`],
    ["Status", html`<${Status} tone=${tone} label=${label} />`],
    ["Transaction", html`<${TxHash} network=${found.network} hash=${found.hash} />`],
    ["Network", found.network],
    ["Token contract", found.contractAddress && html`<${Code} value=${found.contractAddress} what="contract" />`],
    ["From", found.from && html`<${Code} value=${found.from} what="sender" />`],
    ["To", html`<${Code} value=${found.to} what="recipient" />`],
    ["Network fee", found.fee && !isZero(found.fee) && html`<${Amount} value=${found.fee} />`],
    ["Confirmations", `${found.confirmations} of ${found.requiredConfirmations}`],
    ["Block", found.blockNumber !== null && html`${found.blockNumber} <${Code} value=${found.blockHash} what="block hash" />`],
    ["Invoice", invoice],
    ["Withdrawal", withdrawal],
    ["First seen", html`<${Time} at=${found.createdAt} />`],
    ["Confirmed", found.confirmedAt && html`<${Time} at=${found.confirmedAt} />`],
    ["Id", html`<${Code} value=${found.id} what="transaction id" />`],
  ]} /><//>`;
}
