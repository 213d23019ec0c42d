// Deposits that an operator can release: held, below the minimum, or set aside.
import { at, post } from "../app/api.js";
import { Ask, useDialog } from "../app/dialog.js";
import { shorten } from "../app/format.js";
import { List } from "../app/list.js";
import { Amount, Button, Code, Empty, Notice, Page, Time } from "../app/parts.js";
import { can } from "../app/session.js";
import { html, useState } from "../app/ui.js";
import { useCoins, useNetworks } from "./shared.js";
import { heldFor } from "./words.js";

/** The page "Held deposits". */
export default function Held() {
  const [asked, ask, close] = useDialog();
  const [released, release] = useState(null);
  const networks = useNetworks();
  const coins = useCoins();
  const ended = (result) => {
    close();
    if (result) release(result);
  };
  const columns = [
    { name: "amount", label: "Amount", sort: true,
      show: (row) => html`<${Amount} value=${row.amount} symbol=${row.symbol} />` },
    { name: "network", label: "Network", sort: true },
    { name: "why", label: "Why", show: (row) => heldFor(row.flags) },
    { name: "from", label: "From", show: (row) => html`<${Code} value=${row.from} what="sender" />` },
    { name: "address", label: "To", show: (row) => html`<${Code} value=${row.address} what="deposit address" />` },
    { name: "merchantId", label: "Merchant", show: (row) => (row.merchantId
      ? html`<code title=${row.merchantId}>${shorten(row.merchantId)}</code>` : html`<span class="soft">the operator</span>`) },
    { name: "createdAt", label: "Seen", sort: true, show: (row) => html`<${Time} at=${row.createdAt} ago=${true} />` },
  ];
  if (can("addresses:write")) {
    columns.push({ name: "action", label: "Decision", show: (row) => html`<${Button} tone="quiet"
      onClick=${() => ask(row)}>Release<//>` });
  }
  const filters = [
    { name: "network", label: "Network", kind: "select", options: networks },
    { name: "coin", label: "Coin", kind: "select", options: coins },
    { name: "hash", label: "Transaction", kind: "text" },
    { name: "from", label: "Sender", kind: "text" },
    { name: "createdAt", label: "Seen", kind: "time" },
  ];
  return html`<${Page} title="Held deposits"
    lead="Payments to merchants that are credited, and wait for your word before they can be used.">
    ${released && html`<${Notice}
      tone="good" title="Released"><p><${Amount} value=${released.amount} symbol=${released.symbol} /> on ${released.network} ${
      released.status === "confirmed"
        ? "is available to its merchant now." : "is credited once it has its confirmations."}</p><//>`}
    <${List} key=${released?.id ?? ""} path="/transactions" label="Deposits" query=${{ releasable: "true" }}
      columns=${columns} filters=${filters} every=${60}
      empty=${html`<${Empty} title="No deposit is held">Payments from the grey list, below a coin's minimum, or too large for
        any sum show up here.<//>`} />
    ${asked && html`<${Release} deposit=${asked} close=${ended} />`}
  <//>`;
}

function Release({ deposit, close }) {
  const run = async () => (await post(at`/transactions/${deposit.id}/release`)).data;
  return html`<${Ask} title="Release this deposit?" action="Release" typed=${deposit.id} run=${run} close=${close} words=${html`
    <p><${Amount} value=${deposit.amount} symbol=${deposit.symbol} /> on ${deposit.network}. ${heldFor(deposit.flags)}.</p>
    <p>Its money becomes available, and counts for its invoice. It is not held again.</p>`} />`;
}
