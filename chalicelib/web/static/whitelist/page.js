// The whitelist: trusted addresses, their limits, and whether anything else is paid.
import { at, del, newKey, post, put } from "../app/api.js";
import { Ask, Dialog, useDialog } from "../app/dialog.js";
import { Form } from "../app/form.js";
import { amount } from "../app/format.js";
import { List } from "../app/list.js";
import { Button, Code, Empty, Facts, Notice, Page, Status, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can, me } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html, useRef, useState } from "../app/ui.js";
import { GuardedChange, needed } from "../signing/guarded.js";
import { plainAmount, readChange, tenantOf, whitelistText } from "../signing/texts.js";

const HOUR = 3_600_000;
const NOBODY = { enabled: false, signers: [], required_signatures: 0 };

/** How a trusted address counts now: for an hour it is still a new one to the risk rules. */
function trust(row) {
  const young = Date.now() - Date.parse(row.created_at) < HOUR;
  const since = html`<span class="fine">${young ? "counts as new for an hour" : html`since <${Time}
    at=${row.created_at} />`}</span>`;
  return html`<div><${Status} value=${young ? "new" : "active"} label=${young ? "New" : "Trusted"}
    tone=${young ? "busy" : "good"} />${" "}${since}</div>`;
}

const limits = ({ daily_limit: day, monthly_limit: month }) =>
  [day && `${amount(day)} a day`, month && `${amount(month)} in 30 days`].filter(Boolean).join(", ") || "none";
const COLUMNS = [
  { name: "address", label: "Address", show: (row) => html`<${Code} value=${row.address} what="address" />` },
  { name: "label", label: "Name", sort: true, show: (row) => row.label },
  { name: "network", label: "Network", sort: true, show: (row) => html`<span class="one-line">${row.network}</span>` },
  { name: "limits", label: "Limits", show: limits },
  { name: "created_at", label: "State", sort: true, show: trust },
];
const FILTERS = [
  { name: "address", label: "Address", kind: "text" },
  { name: "label", label: "Name", kind: "text", op: "like" },
  { name: "network", label: "Network", kind: "text" },
];

/** The page "Whitelist". */
export default function Whitelist() {
  const [round, turn] = useState(0);
  const [asked, ask, close] = useDialog();
  const settings = useGet(can("merchant:read") ? "/merchant/settings" : null);
  const writing = can("whitelist:write");
  const config = settings.data?.multisig_config ?? NOBODY;
  const after = (changed) => { close(); if (changed) turn(round + 1); };
  const columns = writing ? [...COLUMNS, { name: "do", label: "Change", show: (row) => html`<${RowActions} row=${row}
    ask=${ask} />` }] : COLUMNS;
  const add = writing && html`<${Button} onClick=${() => ask({ what: "add" })}>Add an address<//>`;
  return html`<${Page} title="Whitelist" actions=${add} lead="Addresses that you trust, on all coins of their network.">
    <${Enforcement} settings=${settings.data} />
    <${List} key=${round} label="Whitelist" path="/whitelist/addresses" columns=${columns} filters=${FILTERS}
      empty=${html`<${Empty} title="No trusted addresses yet"
        actions=${add}>Add the addresses that you pay often: payments to them are asked about less.<//>`} />
    ${asked?.what === "add" && html`<${Adding} config=${config} close=${after} />`}
    ${asked?.what === "change" && html`<${Changing} row=${asked.row} config=${config} close=${after} />`}
    ${asked?.what === "remove" && html`<${Ask} title="Trust this address no more?" action="Remove it" tone="danger"
      words=${`${called(asked.row)}. Withdrawals that are accepted already are not touched.`}
      run=${() => del(at`/whitelist/addresses/${asked.row.id}`)} close=${after} />`}
  <//>`;
}

const called = ({ address, network, label }) => `${address} on ${network}${label ? ` (${label})` : ""}`;

function RowActions({ row, ask }) {
  return html`<div class="actions"><${Button} tone="quiet" onClick=${() => ask({ what: "change", row })}
    aria-label=${`Change ${row.address}`}>Change<//>
    <${Button} tone="quiet" onClick=${() => ask({ what: "remove", row })}
      aria-label=${`Remove ${row.address}`}>Remove<//></div>`;
}

function Enforcement({ settings }) {
  if (!settings) return null;
  if (settings.whitelist_enforced) {
    return html`<${Notice} tone="good" title="Only these addresses are paid">Withdrawals to any other address are refused.
      Refunds and claim links may go elsewhere, up to $${settings.refundDailyLimitUSD} a day.${" "}<${Link}
        to="/signers">Change this<//><//>`;
  }
  return html`<${Notice} tone="calm"
    title="Other addresses are paid as well">The limits of these addresses count all the same.${" "}
    <${Link} to="/signers">Pay these addresses alone<//><//>`;
}

const FIELDS = [
  { name: "label", label: "Name", kind: "text", most: 100, example: "Payroll" },
  { name: "daily_limit", label: "Most in 24 hours", kind: "amount", hint: "Of each coin, in its own units. Empty: no limit." },
  { name: "monthly_limit", label: "Most in 30 days", kind: "amount", hint: "Of each coin, in its own units. Empty: no limit." },
];

/** A limit as the service writes it: null for none. */
const limitOf = (text) => (text === undefined || plainAmount(text) === "0" ? null : plainAmount(text) ?? text);

function Adding({ config, close }) {
  const [entry, set] = useState(null);
  const { data: networks } = useGet(can("networks:read") ? "/networks" : null);
  const fields = [
    networks
      ? { name: "network", label: "Network", kind: "select", required: true,
        options: networks.map((one) => [one.network, one.name]) }
      : { name: "network", label: "Network", kind: "text", required: true },
    { name: "address", label: "Address", kind: "text", required: true, mono: true, most: 128 },
    ...FIELDS,
  ];
  // The address in its public spelling: that is what stands in the text to sign.
  const submit = async (values) => {
    const unknown = { data: { valid: true, normalized: values.address } };
    const { data } = can("addresses:read") ? await post("/addresses/validate", placeOf(values)) : unknown;
    if (!data.valid) {
      const fault = { field: "address", constraints: [data.reason] };
      throw Object.assign(new Error(data.reason), { status: 400, fields: [fault] });
    }
    return { address: data.normalized, network: values.network, label: values.label ?? "", ...both(values) };
  };
  if (!entry) return html`<${Dialog} title="Add an address" close=${() => close()}><${Form} fields=${fields} action="Go on"
    submit=${submit} done=${set} cancel=${() => close()} /><//>`;
  return html`<${Guarded} title="Add this address" entry=${entry} before=${null} config=${config} close=${close}
    send=${(signatures, key) => post("/whitelist/addresses", withSignatures(entry, signatures), { key })} />`;
}

const withSignatures = (body, signatures) => (signatures.length > 0 ? { ...body, signatures } : body);
const placeOf = ({ network, address }) => ({ network, address });
const both = (values) => ({ daily_limit: limitOf(values.daily_limit), monthly_limit: limitOf(values.monthly_limit) });

function Changing({ row, config, close }) {
  const [entry, set] = useState(null);
  const fields = FIELDS.map((field) => ({ ...field, value: row[field.name] }));
  const submit = async (values) => ({ ...row, label: values.label ?? "", ...both(values) });
  if (!entry) {
    return html`<${Dialog} title="Change a trusted address" close=${() => close()}><p><code
      class="whole-address">${row.address}</code> on ${row.network}</p>
      <${Form} fields=${fields} action="Go on" submit=${submit} done=${set} cancel=${() => close()} /><//>`;
  }
  const body = { label: entry.label, daily_limit: entry.daily_limit, monthly_limit: entry.monthly_limit };
  return html`<${Guarded} title="Change this address" entry=${entry} before=${row} config=${config} close=${close}
    send=${(signatures) => put(at`/whitelist/addresses/${row.id}`, withSignatures(body, signatures))} />`;
}

/** Sends the entry, with signatures where the signers guard it. */
function Guarded({ title, entry, config, send, close }) {
  const keys = useRef(new Map());
  const tenant = me().merchant ? tenantOf(me().merchant) : null;
  const keyed = (signatures) => {
    const content = JSON.stringify(signatures);
    if (!keys.current.has(content)) keys.current.set(content, newKey());
    return send(signatures, keys.current.get(content)).then(({ data }) => data);
  };
  // The entry's revision is the service's to know; all else of the text is what is shown here.
  const expected = (shown) => {
    const change = readChange(shown);
    return change?.what === "whitelist" && tenant ? whitelistText(tenant, change.revision, entry) : null;
  };
  return html`<${GuardedChange} title=${title} send=${keyed} expected=${expected} wants=${needed(config, NOBODY)}
    close=${close}>
    <${Facts} rows=${[
      ["Address", html`<code class="whole-address">${entry.address}</code>`], ["Network", entry.network], ["Name", entry.label],
      ["Most in 24 hours", entry.daily_limit ?? "no limit"], ["Most in 30 days", entry.monthly_limit ?? "no limit"],
    ]} /><//>`;
}
