// A new withdrawal: what to pay, then a page that says what will happen, then it is made.
import { at, mayBeDone, newKey, post } from "../app/api.js";
import { amount } from "../app/format.js";
import { Form } from "../app/form.js";
import { Amount, Button, Card, Facts, Failure, Loading, Notice, Page } from "../app/parts.js";
import { Link, arriving, go } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html, useEffect, useRef, useState } from "../app/ui.js";
import { coinFields, coinIn, useCoins } from "../catalogue/coin_choice.js";
import { factsAbout, hopeless, judged } from "./check.js";

const PRIORITIES = [
  ["low", "Low: cheaper, slower"], ["normal", "Normal"], ["high", "High"], ["urgent", "Urgent: dearer, faster"],
];

/** The page "New withdrawal". Nothing of the address fills it in: a link that somebody was sent would name the payee. */
export default function NewWithdrawal() {
  const [checked, check] = useState(null);
  const turn = (next) => { arriving.now = true; check(next); };
  const key = useRef(newKey());
  const begun = useRef({});
  const { coins, balances, loading, error, again } = useCoins();
  if (loading && !coins && can("coins:read")) return html`<${Page} title="New withdrawal"><${Loading} /><//>`;
  if (checked) {
    return html`<${Check} ...${checked} sendKey=${key.current} back=${() => turn(null)}
      made=${(id) => { key.current = newKey(); go(at`/withdrawals/${id}`); }} />`;
  }
  const submit = async (values) => {
    const asked = { ...coinIn(values), amount: values.amount, to_address: values.to_address, priority: values.priority };
    const facts = await factsAbout(asked, can);
    if (JSON.stringify(values) !== JSON.stringify(begun.current)) key.current = newKey(); // other content is another withdrawal
    begun.current = values;
    return { asked: { ...asked, ...(values.note ? { metadata: { note: values.note } } : {}) }, facts };
  };
  return html`<${Page} title="New withdrawal" lead="Nothing is sent yet: the next page says what will happen.">
    <${Failure} error=${error} again=${again} />
    <${Card}><${Form} action="Go on" submit=${submit} done=${turn} fields=${fields(coins, balances, begun.current)}
      below=${(values) => html`<${Preview} ...${coinIn(values)} priority=${values.priority}
        balances=${balances} />`} /><//><//>`;
}

function fields(coins, balances, before) {
  return [
    ...coinFields(coins, balances, before.choice),
    { name: "to_address", label: "To address", kind: "text", required: true, mono: true, most: 128, value: before.to_address,
      hint: "Paste it. What is sent to a wrong address is lost." },
    { name: "amount", label: "Amount", kind: "amount", required: true, example: "0.5", value: before.amount,
      hint: "In coin units. The payee gets all of it: the network's fee is not taken off." },
    { name: "priority", label: "How fast", kind: "select", required: true, options: PRIORITIES,
      value: before.priority ?? "normal" },
    { name: "note", label: "Note", kind: "text", most: 500, value: before.note,
      hint: "For your books. It is kept with the withdrawal." },
  ];
}

/** What of the coin is available, and what the network asks for. */
function Preview({ coin, network, priority, balances }) {
  const known = coin && network;
  const { data, error } = useGet(known && can("withdrawals:read") ? "/withdrawals/fees" : null, { coin, network });
  if (!known) return null;
  const balance = balances?.find((one) => one.coin === coin && one.network === network);
  const fee = data?.estimates.find((one) => one.priority === priority);
  return html`<div aria-live="polite"><${Facts} rows=${[
    ["Available", balances && html`<${Amount} value=${balance?.available ?? "0"} symbol=${balance?.symbol ?? coin} />`],
    ["Network fee", fee && html`<${Fee} fee=${fee} coin=${data.fee_coin} />`],
    ["Takes about", fee?.confirmation_time],
  ]} />${error && html`<p class="fine">The fee is not known at the moment: ${error.message}</p>`}</div>`;
}

function Fee({ fee, coin }) {
  if (fee.fee === null) return html`not known yet`;
  return html`<${Amount} value=${fee.fee} symbol=${coin} usd=${fee.feeUSD} />`;
}

/** What will happen, and the button that makes it happen. */
function Check({ asked, facts, sendKey, back, made }) {
  const [failure, fail] = useState(null);
  const [busy, work] = useState(false);
  const lines = judged(asked, facts);
  const symbol = (facts.coin?.symbol ?? asked.coin).toUpperCase();
  const fee = facts.fees?.estimates.find((one) => one.priority === asked.priority);
  const alive = useRef(true);
  useEffect(() => () => { alive.current = false; }, []);
  const send = async () => {
    work(true);
    fail(null);
    try {
      made((await post("/withdrawals", asked, { key: sendKey })).data.id);
    } catch (error) {
      if (alive.current) {
        fail(error);
        work(false);
      }
    }
  };
  return html`<${Page} title="Check before you send">
    <${Card} title=${`Pay ${amount(asked.amount)} ${symbol}`}>
      <${Facts} rows=${[
        ["To", html`<code class="whole-address">${facts.validation?.normalized ?? asked.to_address}</code>`],
        ["Network", asked.network],
        ["Network fee", fee && html`<${Fee} fee=${fee} coin=${facts.fees.fee_coin} />`],
        ["Takes about", fee?.confirmation_time],
        ["Note", asked.metadata?.note],
      ]} />
    <//>
    ${lines.map((each) => html`<${Notice} key=${each.title} tone=${each.tone} title=${each.title}>${each.words}<//>`)}
    ${failure && html`<${Failure} error=${failure} />`}
    ${failure && mayBeDone(failure) && html`<${Notice} tone="warn" title="Send it again with the button below">
      The answer was lost. The same request again makes no second withdrawal. Before you change something, look in the list of
      withdrawals whether it was made.<//>`}
    <div class="actions">
      <${Button} busy=${busy} disabled=${hopeless(lines)} onClick=${send}>Send ${amount(asked.amount)} ${symbol}<//>
      <${Button} tone="quiet" onClick=${back} disabled=${busy}>Change something<//>
      <${Link} to="/withdrawals" class="button quiet">Do not send<//>
    </div><//>`;
}
