// The grey list: addresses whose payments are held, and to which withdrawals wait for the operator.
import { del, post } from "../app/api.js";
import { Ask, Dialog, useDialog } from "../app/dialog.js";
import { Form } from "../app/form.js";
import { List } from "../app/list.js";
import { Button, Code, Empty, Page, Time } from "../app/parts.js";
import { can } from "../app/session.js";
import { html, useState } from "../app/ui.js";
import { useNetworks } from "./shared.js";

/** The page "Grey list". */
export default function GreyList() {
  const [asked, ask, close] = useDialog();
  const [round, again] = useState(0);
  const networks = useNetworks();
  const may = can("addresses:write");
  const columns = [
    { name: "address", label: "Address", sort: true,
      show: (row) => html`<${Code} value=${row.address} head=${14} tail=${8} />` },
    { name: "network", label: "Network", sort: true },
    { name: "reason", label: "Reason", show: (row) => row.reason ?? html`<span class="soft">none given</span>` },
    { name: "createdAt", label: "Since", sort: true, show: (row) => html`<${Time} at=${row.createdAt} />` },
  ];
  if (may) columns.push({ name: "action", label: "Decision", show: (row) => html`<${Button} tone="quiet"
    onClick=${() => ask(row)}>Take off<//>` });
  const filters = [
    { name: "network", label: "Network", kind: "select", options: networks },
    { name: "address", label: "Address", kind: "text" },
    { name: "reason", label: "Reason", kind: "text", op: "like" },
  ];
  const ended = (result) => {
    close();
    if (result) again(round + 1);
  };
  const fields = [
    { name: "network", label: "Network", kind: "select", required: true, options: networks },
    { name: "address", label: "Address", kind: "text", required: true, mono: true },
    { name: "reason", label: "Reason", kind: "text", most: 500, hint: "Merchants see it." },
  ];
  const add = async (values, { key }) => (await post("/addresses/grey-list", values, { key })).data;
  return html`<${Page} title="Grey list"
    lead="What these addresses pay is credited and held until you release it. Withdrawals to them wait for you."
    actions=${may && html`<${Button} onClick=${() => ask("add")}>Add an address<//>`}>
    <${List} key=${round} path="/addresses/grey-list" plain=${true} label="Grey list" columns=${columns} filters=${filters}
      rowKey=${(row) => `${row.network}:${row.address}`}
      empty=${html`<${Empty} title="The grey list is empty">Add addresses whose payments you want to look at before they
        can be used.<//>`} />
    ${asked === "add" && html`<${Dialog} title="Add an address" close=${close}><${Form} fields=${fields} action="Add"
      submit=${add} done=${ended} cancel=${close} /><//>`}
    ${asked && asked !== "add" && html`<${Ask} title="Take this address off?" action="Take off" close=${ended}
      words=${html`<p><code>${asked.address}</code> on ${asked.network}</p>
        <p>What it pays from now on is not held. What is held stays held until it is released.</p>`}
      run=${async () => (await del("/addresses/grey-list", { network: asked.network, address: asked.address })).data} />`}
  <//>`;
}
