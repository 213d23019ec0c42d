// The sandbox's forms: paying, mining, reorganising, moving the clock, setting a rate, deciding about a withdrawal.
import { Form } from "../app/form.js";
import { amount, countOf, shorten, utc } from "../app/format.js";
import { html } from "../app/ui.js";
import { placeFields, useCoinList, useNetworks } from "../catalogue/networks.js";
import { advance, mine, pay, reorganise, setRate, settle } from "./actions.js";

const fixed = (name, value) => ({ name, label: name, kind: "text", value, when: () => false });

/** Pay into an address. What `to` names (`{ address, network, coin, amount }`) is filled in; with `lock` address and
 * network stay. */
export function PayForm({ to = {}, lock = false, done }) {
  const networks = useNetworks();
  const coins = useCoinList();
  const [network, coin] = placeFields(networks, coins, to);
  const fields = [
    lock ? fixed("network", to.network) : network,
    lock ? fixed("address", to.address) : { name: "address", label: "Address", kind: "text", mono: true, required: true,
      value: to.address },
    coin,
    { name: "amount", label: "Amount", kind: "amount", required: true, value: to.amount, example: "0.05",
      hint: "More or less than asked for rehearses an over- or underpayment." },
    { name: "confirm", label: "Mine its confirmations at once", kind: "check", value: true,
      hint: "Without them it stays unconfirmed until blocks are mined." },
    { name: "from", label: "Sender", kind: "text", mono: true,
      hint: "Whom it shall seem to come from; a made-up address without it." },
  ];
  const said = (paid) =>
    `Paid ${amount(paid.amount)} ${paid.coin.toUpperCase()} in block ${amount(paid.blockNumber)}, ${shorten(paid.txid)}. ${
    paid.confirmed ? "Its confirmations are mined: it is credited in a moment." : "Mine blocks to confirm it."}`;
  const submit = (values, options) => pay(lock ? { ...values, network: to.network, address: to.address } : values, options);
  return html`<${Form} fields=${fields} action="Pay" submit=${submit} say=${said} done=${done} />`;
}

/** Mine blocks on a network. */
export function MineForm({ network: chosen, count }) {
  const [network] = placeFields(useNetworks(), null, { network: chosen });
  const fields = [network, { name: "count", label: "Blocks", kind: "number", required: true, value: count ?? 12 }];
  return html`<${Form} fields=${fields} action="Mine" submit=${mine} say=${(made) =>
    `${countOf(made.mined, "block")} mined on ${made.network}: the newest is ${amount(made.blockNumber)}.`} />`;
}

/** Replace the last blocks of a network. */
export function ReorgForm({ network: chosen }) {
  const [network] = placeFields(useNetworks(), null, { network: chosen });
  const fields = [
    network,
    { name: "depth", label: "Depth", kind: "number", required: true, value: 3,
      hint: "How many of the last blocks are replaced." },
    { name: "remine", label: "Bring back what was in them", kind: "check",
      hint: "Without it, payments in those blocks are gone: credits are reversed." },
  ];
  return html`<${Form} fields=${fields} action="Reorganise" danger submit=${reorganise} say=${(done) =>
    `Blocks from ${amount(done.fromBlock)} on are replaced. ${countOf(done.dropped.length,
      "transaction")} fell out, ${countOf(done.remined.length, "transaction")} came back.`} />`;
}

/** Move the sandbox's time forward. */
export function ClockForm() {
  const fields = [
    { name: "count", label: "Forward by", kind: "number", required: true, value: 1 },
    { name: "unit", label: "Unit", kind: "select", required: true, value: "hours", options: ["minutes", "hours", "days"] },
  ];
  return html`<${Form} fields=${fields} action="Move the clock" submit=${advance}
    say=${(now) => `It is ${utc(now.now)} in the sandbox now.`} />`;
}

/** Set what a coin is worth for this merchant's prices. */
export function RateForm() {
  const coins = useCoinList();
  const slugs = coins && [...new Set(coins.map((each) => each.coin))];
  const coin = { name: "coin", label: "Coin", required: true };
  const fields = [
    slugs ? { ...coin, kind: "select", options: slugs.map((slug) => [slug, slug.toUpperCase()]) }
      : { ...coin, kind: "text", example: "eth" },
    { name: "fiat", label: "Currency", kind: "text", required: true, value: "USD", most: 3 },
    { name: "what", label: "Rate", kind: "select", required: true, value: "own",
      options: [["own", "A rate of my own"], ["usual", "The usual one again"], ["stale", "Too old to price anything"]] },
    { name: "value", label: "Worth of one coin", kind: "amount", required: true, example: "2700",
      when: (values) => values.what === "own" },
  ];
  const submit = (values, options) => setRate({ ...values, fiat: values.fiat.toUpperCase() }, options);
  return html`<${Form} fields=${fields} action="Set" submit=${submit} say=${(rate) => {
    const name = `${rate.coin.toUpperCase()} in ${rate.fiat}`;
    if (rate.stale) return `${name} counts as too old: nothing is priced by it.`;
    return rate.own ? `One ${rate.coin.toUpperCase()} is worth ${amount(rate.value)} ${rate.fiat} from now on.`
      : `${name} has its usual rate again.`;
  }} />`;
}

const OUTCOMES = [
  ["confirm", "Confirm it: mined, with all its confirmations"],
  ["fail", "Fail it: mined and failed"],
  ["stick", "Leave it stuck: no block takes it"],
];
const STATES = {
  planned: "It is not signed yet: this is done once it is sent.", waiting: "It waits in the mempool behind an earlier one.",
  stuck: "No block takes it until something else is said.", succeeded: "It is in a block, with all its confirmations.",
  failed: "It is in a block, and failed.",
};

/** Decide what the chain makes of the withdrawal `id`; without it a person names one. */
export function SettleForm({ id }) {
  const fields = [
    id ? fixed("id", id) : { name: "id", label: "Withdrawal's id", kind: "text", mono: true, required: true, example: "wd_…" },
    { name: "outcome", label: "What becomes of it", kind: "select", required: true, value: "confirm", options: OUTCOMES },
  ];
  const submit = (values) => settle(id ?? values.id, values);
  return html`<${Form} fields=${fields} action="Decide" submit=${submit} say=${(done) => STATES[done.state]} />`;
}
