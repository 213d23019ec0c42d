// Payments to our addresses on the wrong network, or in a token that is not registered.
import { at, post } from "../app/api.js";
import { Dialog, useDialog } from "../app/dialog.js";
import { shorten, words } from "../app/format.js";
import { Form } from "../app/form.js";
import { List } from "../app/list.js";
import { Amount, Button, Empty, Page, Status, Time } from "../app/parts.js";
import { go } from "../app/router.js";
import { can } from "../app/session.js";
import { html } from "../app/ui.js";
import { useNetworks } from "./shared.js";

const STATUSES = ["open", "recorded", "credit", "return"];
const EVM = new Set(["ethereum", "bsc", "polygon", "arbitrum", "fantom"]);

/** A stray payment's amount; in units where its token is not registered. */
export function StrayAmount({ stray }) {
  if (stray.amount !== null) return html`<${Amount} value=${stray.amount} symbol=${stray.symbol} />`;
  return html`<span class="amount">${stray.units} units</span> <span class="soft">of a token that is not registered</span>`;
}

/** A stray payment's status with its tone. */
export function StrayStatus({ value }) {
  return html`<${Status} value=${value} tone=${value === "open" ? "warn" : "good"}
    label=${{ open: "Undecided", credit: "Credited", return: "Sent back" }[value] ?? words(value)} />`;
}

/** The page "Stray payments". */
export default function Strays() {
  const [asked, ask, close] = useDialog();
  const networks = useNetworks().filter(([slug]) => EVM.has(slug));
  const columns = [
    { name: "amount", label: "Amount", show: (row) => html`<${StrayAmount} stray=${row} />` },
    { name: "network", label: "Network", sort: true },
    { name: "status", label: "Status", sort: true, show: (row) => html`<${StrayStatus} value=${row.status} />` },
    { name: "address", label: "Deposit address",
      show: (row) => html`<code title=${row.address}>${shorten(row.address)}</code>` },
    { name: "merchantId", label: "Merchant",
      show: (row) => html`<code title=${row.merchantId}>${shorten(row.merchantId)}</code>` },
    { name: "createdAt", label: "Read", sort: true, show: (row) => html`<${Time} at=${row.createdAt} ago=${true} />` },
  ];
  const filters = [
    { name: "status", label: "Status", kind: "select", options: STATUSES.map((each) => [each, words(each)]) },
    { name: "network", label: "Network", kind: "select", options: networks },
    { name: "txid", label: "Transaction", kind: "text" },
    { name: "address", label: "Deposit address", kind: "text" },
    { name: "createdAt", label: "Read", kind: "time" },
  ];
  const fields = [
    { name: "network", label: "Network that it was paid on", kind: "select", required: true, options: networks },
    { name: "txid", label: "Transaction", kind: "text", required: true, mono: true,
      hint: "Its hash, from the payer or from the alarm: 0x and 64 digits." },
  ];
  const read = async (values, { key }) => (await post("/stray-payments", values, { key })).data;
  const found = (result) => {
    close();
    if (result?.payments.length === 1) go(at`/strays/${result.payments[0].id}`);
    else if (result) go("/strays", { txid: result.txid });
  };
  return html`<${Page} title="Stray payments"
    lead=${"Payments to merchants' addresses on the wrong network, or in a token that nobody registered. Read the "
      + "transaction first; then credit it, or send it back."}
    actions=${can("addresses:write") && html`<${Button} onClick=${() => ask()}>Read a transaction<//>`}>
    <${List} path="/stray-payments" label="Stray payments" columns=${columns}
      filters=${filters} to=${(row) => at`/strays/${row.id}`}
      empty=${html`<${Empty} title="No stray payment was read">Where a payer, or an alarm, names a transaction to the wrong
        network, read it here.<//>`} />
    ${asked && html`<${Dialog} title="Read a transaction" close=${close}>
      <p class="soft">Nothing is credited by reading it.</p>
      <${Form} fields=${fields} action="Read" submit=${read} done=${found} cancel=${close} /><//>`}
  <//>`;
}
