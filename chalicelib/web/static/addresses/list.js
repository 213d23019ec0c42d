// The merchant's deposit addresses.
import { at, post } from "../app/api.js";
import { Dialog, useDialog } from "../app/dialog.js";
import { Form } from "../app/form.js";
import { dollars, isZero, shorten, sumOfDollars } from "../app/format.js";
import { List } from "../app/list.js";
import { Button, Empty, Page, Time } from "../app/parts.js";
import { go } from "../app/router.js";
import { can } from "../app/session.js";
import { html } from "../app/ui.js";
import { useCoinList, useNetworks } from "../catalogue/networks.js";
import { addressFields } from "./fields.js";

/** What lies on an address, in US dollars; null where a part of it is not known. */
export function worth(address) {
  const values = address.balances.map((each) => each.balanceUSD);
  return values.includes(null) ? null : sumOfDollars(values);
}

const lying = (usd) => (usd === null ? "Not known" : isZero(usd) ? "" : dollars(usd));

const MODES = { single: "One coin", common: "One network", cross: "All EVM networks" };
const COLUMNS = [
  { name: "address", label: "Address", show: (row) => html`<code>${shorten(row.address, 10, 8)}</code>` },
  { name: "label", label: "Label", sort: true },
  { name: "network", label: "Network", sort: true },
  { name: "mode", label: "Receives", show: (row) => (row.coin ? `${row.coin.toUpperCase()} only`
    : MODES[row.mode] ?? row.mode) },
  { name: "worth", label: "On it", align: "end", show: (row) => lying(worth(row)) },
  { name: "createdAt", label: "Made", sort: true, show: (row) => html`<${Time} at=${row.createdAt} />` },
];

const filters = (networks) => [
  networks ? { name: "network", label: "Network", kind: "select", options: networks }
    : { name: "network", label: "Network", kind: "text" },
  { name: "label", label: "Label contains", kind: "text", op: "like" },
  { name: "address", label: "Address", kind: "text" },
  { name: "createdAt", label: "Made", kind: "time" },
];

/** The page "Addresses". */
export default function Addresses() {
  const networks = useNetworks();
  const [making, make, close] = useDialog();
  const button = can("addresses:create") && html`<${Button} onClick=${() => make()}>New address<//>`;
  return html`<${Page} title="Addresses" actions=${button}
    lead="What is sent to them is credited to you, with or without an invoice.">
    <${List} label="Addresses" path="/addresses" columns=${COLUMNS} filters=${filters(networks)}
      to=${(row) => at`/addresses/${row.id}`}
      empty=${html`<${Empty} title="No address yet" actions=${button}>An invoice has an address of its own. Make others for
        customers who pay again and again.<//>`} />
    ${making && html`<${NewAddress} networks=${networks} close=${close} />`}
  <//>`;
}

function NewAddress({ networks, close }) {
  const coins = useCoinList();
  const submit = async (values, options) => (await post("/addresses", values, options)).data;
  return html`<${Dialog} title="New address" close=${close}>
    <${Form} fields=${addressFields(networks, coins)} action="Make it" submit=${submit} cancel=${close}
      done=${(made) => go(at`/addresses/${made.id}`)} />
  <//>`;
}
