// Claim links (payout links): money for somebody whose address is not known. Whoever has the link is paid, so it is shown once.
import { at, post } from "../app/api.js";
import { Form } from "../app/form.js";
import { List } from "../app/list.js";
import { Amount, Card, Code, Empty, Facts, Failure, Loading, Notice, Page, Status, Time } from "../app/parts.js";
import { Link, arriving, go } from "../app/router.js";
import { can } from "../app/session.js";
import { showOnce } from "../app/shown_once.js";
import { useGet } from "../app/use.js";
import { html, useState } from "../app/ui.js";
import { coinFields, coinIn, useCoins } from "../catalogue/coin_choice.js";
import { Cancel, Standing, common } from "./list.js";

const COLUMNS = [
  { name: "id", label: "Claim link", show: (row) => html`<${Amount} value=${row.amount} symbol=${row.coin} />` },
  { name: "status", label: "Status", show: (row) => html`<${Status} value=${row.status} />` },
  { name: "description", label: "What for", show: (row) => row.description ?? "" },
  { name: "expiresAt", label: "Usable until", sort: true, show: (row) => html`<${Time} at=${row.expiresAt} />` },
  { name: "createdAt", label: "Made", sort: true, show: (row) => html`<${Time} at=${row.createdAt} />` },
];
const FILTERS = [
  { name: "coin", label: "Coin", kind: "text" },
  { name: "network", label: "Network", kind: "text" },
  { name: "address", label: "Paid to", kind: "text" },
  { name: "createdAt", label: "Made", kind: "time" },
];
const SPANS = [["3600", "1 hour"], ["86400", "1 day"], ["604800", "7 days"], ["2592000", "30 days"]];

/** The pages "Claim links", "New claim link" and of one link. */
export default function ClaimLinks({ params }) {
  if (params.id === "new") return html`<${New} />`;
  if (params.id) return html`<${One} id=${params.id} />`;
  const make = can("withdrawals:create") && html`<${Link} to="/claim-links/new" class="button">New claim link<//>`;
  return html`<${Page} title="Claim links" actions=${make}
    lead="Money for somebody whose address you do not know. The amount is frozen, and the link's page asks where to pay it.">
    <${List} label="Claim links" path="/payout-links" columns=${COLUMNS} filters=${FILTERS}
      to=${(row) => at`/claim-links/${row.id}`}
      empty=${html`<${Empty} title="No claim links yet"
        actions=${make}>A prize, a payout, a gift: send a link in place of asking for an address.<//>`} /><//>`;
}

function One({ id }) {
  const { data: record, error, loading, again, put } = useGet(at`/payout-links/${id}`, {}, { every: 15 });
  if (!record) return html`<${Page} title="Claim link">${loading && html`<${Loading} />`}<${Failure} error=${error}
    again=${again} /><//>`;
  return html`<${Page} title=${`Claim link over ${record.amount} ${record.coin.toUpperCase()}`}
    actions=${html`<${Cancel} record=${record} path="/payout-links" put=${put} />`}>
    <${Failure} error=${error} again=${again} /><${Standing} record=${record} />
    <${Card} title="Claim link"><${Facts} rows=${[
      ["What for", record.description],
      ["Metadata", record.metadata && html`<code>${JSON.stringify(record.metadata)}</code>`],
      ...common(record)]} /><//><//>`;
}

function New() {
  const [made, keep] = useState(null);
  const { coins, balances, loading, error, again } = useCoins();
  if (made) return html`<${Unseen} made=${made} />`;
  if (loading && !coins && can("coins:read")) return html`<${Page} title="New claim link"><${Loading} /><//>`;
  const submit = async (values, { key }) => {
    const body = { ...coinIn(values), amount: values.amount, expiresIn: Number(values.expiresIn) };
    if (values.description) body.description = values.description;
    return (await post("/payout-links", body, { key })).data;
  };
  const done = (link) => {
    if (link.claimUrl) return show(link);
    arriving.now = true;
    return keep(link);
  };
  const fields = [
    ...coinFields(coins, balances),
    { name: "amount", label: "Amount", kind: "amount", required: true, example: "0.05",
      hint: "It is frozen as soon as the link is made." },
    { name: "description", label: "What for", kind: "text", most: 500, hint: "Its payee reads it on the page." },
    { name: "expiresIn", label: "Usable for", kind: "select", required: true, options: SPANS, value: "604800",
      hint: "Unused until then, the money is available again." },
  ];
  return html`<${Page} title="New claim link">
    <${Failure} error=${error} again=${again} />
    <${Card}><${Form} fields=${fields} action="Make the link" submit=${submit}
      done=${done} /><//><//>`;
}

/** The page of the new link, and over it the link itself, this once. */
function show(made) {
  showOnce({
    title: `${made.amount} ${made.coin.toUpperCase()} on ${made.network}`, secret: made.claimUrl, name: "The claim link",
    words: html`<p>Whoever has this link is paid, once. Send it to its payee alone.</p>`,
    facts: [["Usable until", html`<${Time} at=${made.expiresAt} ago />`], ["Id", html`<${Code} value=${made.id} what="id" />`]],
    lost: "If it is lost, cancel this one and make another.",
  });
  go(at`/claim-links/${made.id}`);
}

/** The same request again made nothing new: its answer has no link. */
function Unseen({ made }) {
  return html`<${Page} title="The link is made"><${Notice} tone="warn" title="Its address can not be shown again">
    Cancel it and make another if you do not have it.<//>
    <div class="actions"><${Link} to=${at`/claim-links/${made.id}`} class="button">To the link<//></div><//>`;
}
