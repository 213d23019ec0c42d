// Stakes of the hot wallet on Tron.
import { post } from "../app/api.js";
import { Dialog, useDialog } from "../app/dialog.js";
import { Form } from "../app/form.js";
import { List } from "../app/list.js";
import { Amount, Button, Empty, Page, Status } from "../app/parts.js";
import { can } from "../app/session.js";
import { words } from "../app/format.js";
import { TxHash } from "../catalogue/explorers.js";
import { html, useState } from "../app/ui.js";

const FIELDS = [
  { name: "amount", label: "TRX", kind: "amount", required: true, example: "1000",
    hint: "Out of the hot wallet. What is staked can not pay withdrawals." },
  { name: "resource", label: "What for", kind: "select", required: true,
    options: [["ENERGY", "Energy: for token transfers"], ["BANDWIDTH", "Bandwidth: for every transaction"]] },
];

/** The page "Staking". */
export default function Staking() {
  const [asked, ask, close] = useDialog();
  const [round, again] = useState(0);
  const columns = [
    { name: "amount", label: "Amount", sort: true, show: (row) => html`<${Amount} value=${row.amount} symbol="trx" />` },
    { name: "resource", label: "What for", sort: true, show: (row) => words(row.resource.toLowerCase()) },
    { name: "status", label: "Status", sort: true, show: (row) => html`<${Status} value=${row.status} />` },
    { name: "transactionId", label: "Transaction",
      show: (row) => html`<${TxHash} network="tron" hash=${row.transactionId} />` },
  ];
  const filters = [
    { name: "resource", label: "What for", kind: "select", options: [["ENERGY", "Energy"], ["BANDWIDTH", "Bandwidth"]] },
    { name: "status", label: "Status", kind: "select", options: ["pending", "confirmed", "failed"] },
  ];
  const stake = async (values, { key }) => (await post("/networks/tron/stake", values, { key })).data;
  const done = () => {
    close();
    again(round + 1);
  };
  return html`<${Page} title="Staking" lead="TRX of Tron's hot wallet, staked so that transactions cost less."
    actions=${can("networks:write") && html`<${Button} onClick=${() => ask()}>Stake TRX<//>`}>
    <${List} key=${round} path="/networks/tron/stake" plain=${true} label="Stakes" columns=${columns} filters=${filters}
      rowKey=${(row) => row.transactionId} every=${30}
      empty=${html`<${Empty} title="Nothing is staked">Without a stake each transaction burns TRX.<//>`} />
    ${asked && html`<${Dialog} title="Stake TRX" close=${close}><${Form} fields=${FIELDS} action="Stake" submit=${stake}
      done=${done} cancel=${close} /><//>`}
  <//>`;
}
