// Many withdrawals from a file: read, checked row by row, then sent in batches with progress. Nothing is sent before the check.
import { get, post } from "../app/api.js";
import { Form } from "../app/form.js";
import { Card, Failure, Loading, Page, Progress } from "../app/parts.js";
import { arriving } from "../app/router.js";
import { can, me } from "../app/session.js";
import { html, useRef, useState } from "../app/ui.js";
import { coinOf } from "../catalogue/coin_names.js";
import { coinOptions, useCoins } from "../catalogue/coin_choice.js";
import { Check } from "./check.js";
import { coinTable, readPayouts, toValidate, trustedOf, withResults } from "./file.js";
import { forget, keep, kept } from "./run_storage.js";
import { Sending } from "./sending.js";

const PRIORITIES = [["low", "Low"], ["normal", "Normal"], ["high", "High"], ["urgent", "Urgent"]];
const MOST_RECENT = 1_000;
const LISTED = 100;
const MOST_FILE = 2 * 1024 * 1024;
const MINUTE = 60; // seconds until a limit has room again, unless the service says

/** The page "Pay from a file". */
export default function Payouts() {
  const [run, set] = useState(() => kept(me().key_id));
  const [plan, make] = useState(null);
  const before = useRef({});
  const known = useCoins();
  const begin = (next) => { keep(next); arriving.now = true; set(next); };
  const end = () => { forget(); arriving.now = true; set(null); make(null); before.current = {}; };
  const turn = (next) => { arriving.now = true; make(next); };
  if (run) return html`<${Sending} run=${run} end=${end} />`;
  if (!known.coins) {
    return html`<${Page} title="Pay from a file">${known.loading && html`<${Loading} />`}<${Failure} error=${known.error}
      again=${known.again} /><//>`;
  }
  if (plan) return html`<${Check} plan=${plan} begin=${begin} back=${() => turn(null)} />`;
  return html`<${Choosing} known=${known} make=${turn} before=${before} />`;
}

/** The file, or its text, and what it is called. */
function Choosing({ known, make, before }) {
  const [typed, type] = useState(before.current.text ?? "");
  const [round, turn] = useState(0);
  const [refused, refuse] = useState(null);
  const [step, tell] = useState(null);
  const open = async (event) => {
    const [file] = event.currentTarget.files;
    if (!file) return;
    refuse(file.size > MOST_FILE ? "This file is too large: at most 2 MiB are read." : null);
    if (file.size <= MOST_FILE) {
      before.current = { ...before.current, text: await file.text() };
      type(before.current.text);
      turn(round + 1);
    }
  };
  const submit = async (values) => {
    let read;
    try {
      read = readPayouts(values.text, coinOf(values.choice));
    } catch (error) {
      throw Object.assign(new Error(error.message), { status: 400, fields: [{ field: "text", constraints: [error.message] }] });
    }
    return { ...read, name: values.name, priority: values.priority, facts: await factsFor(read.rows, known, tell) };
  };
  const fields = [
    { name: "name", label: "Name of this run", kind: "text", required: true, most: 60, 
      value: before.current.name ?? `Payouts of ${new Date().toISOString().slice(0, 10)}`,
      hint: "The same file under the same name is paid once within 24 hours, whatever happens to this tab." },
    { name: "choice", label: "Coin, where a row names none", kind: "select", options: coinOptions(known.coins, known.balances),
      value: before.current.choice },
    { name: "priority", label: "How fast", kind: "select", required: true, options: PRIORITIES,
      value: before.current.priority ?? "normal" },
    { name: "text", label: "Rows", kind: "area", required: true, rows: 8, value: typed,
      hint: "A first line “address,amount”, with “coin” and “network” where they differ. Then one payment a line." },
  ];
  return html`<${Page} title="Pay from a file"
    lead="Every row is checked first. You see what is wrong, and what it comes to, before anything is sent.">
    <${Failure} error=${known.error} again=${known.again} />
    <${Card}>
      <div class="form"><div class="field"><label for="payout-file">CSV file</label><input id="payout-file" type="file"
        accept=".csv,.txt,text/csv" onChange=${open} />
        ${refused && html`<p class="wrong" role="alert">${refused}</p>`}</div></div>
      <${Form} key=${round} fields=${fields} action="Check the rows" submit=${submit} done=${make}
        change=${(values) => { before.current = values; }} />
      ${step && html`<${Progress} value=${step.done} max=${step.all} label="Checking">${step.words}<//>`}
    <//><//>`;
}

/** Everything that the check compares the rows with. `tell({ done, all, words })` says how far it is. */
async function factsFor(rows, known, tell) {
  let addresses = new Map();
  const lists = toValidate(rows, addresses);
  for (const [place, { network, addresses: texts }] of lists.entries()) {
    tell({ done: place, all: lists.length, words: `Looking at addresses: ${place * LISTED} so far` });
    const asked = () => post("/addresses/validate", { network, addresses: texts });
    const { data } = await patiently(asked, tell, place, lists.length);
    addresses = withResults(addresses, data.results);
  }
  tell({ done: lists.length, all: lists.length, words: "Looking at balances and at what was paid lately" });
  const trusted = await trustedIfEnforced();
  const facts = { coins: coinTable(known.coins), addresses, balances: known.balances, trusted, recent: await recent() };
  tell(null);
  return facts;
}

/** Asks again where the key's limit is met. */
async function patiently(ask, tell, done, all) {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (error.status !== 429) throw error;
      const seconds = error.retryAfter ?? MINUTE;
      tell({ done, all, words: `This key's limit is met: going on in ${seconds} seconds` });
      await pause(seconds);
    }
  }
}

const pause = (seconds) => new Promise((done) => { setTimeout(done, seconds * 1000); });

async function all(path, query, most = MOST_RECENT) {
  const found = [];
  for (let cursor; ;) {
    const { data, page } = await get(path, { ...query, limit: 100, cursor });
    found.push(...data);
    cursor = page?.next_cursor;
    if (!cursor || !page.has_next || found.length >= most) return found;
  }
}

/** Addresses of the whitelist where nothing else is paid; null where others are, or this key may not read it. */
async function trustedIfEnforced() {
  if (!can("merchant:read") || !can("whitelist:read")) return null;
  const { data } = await get("/merchant/settings");
  return data.whitelist_enforced ? trustedOf(await all("/whitelist/addresses", {}, 10_000)) : null;
}

/** Withdrawals of the last day that are not undone. */
async function recent() {
  if (!can("withdrawals:read")) return null;
  const since = new Date(Date.now() - 86_400_000).toISOString();
  const found = await all("/withdrawals", { from_date: since });
  return found.filter((one) => !["failed", "cancelled"].includes(one.status));
}
