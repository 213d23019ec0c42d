// Pays an invoice from a wallet in this browser. The page works without it: it is loaded after the address and the QR code are
// there. What is to be paid is read from the page (`#payable`), which follows the invoice; the words come with the page too.
import * as evm from "./evm.js";
import { watch } from "./found_wallets.js";
import * as tron from "./tron_link.js";

const DECLINED = 4001;
const WAITING = -32002;
const SENT_MS = 30 * 60_000; // so long a transaction may take to be seen: nobody is asked to pay twice meanwhile
const MOST_REASON = 200;
const ICONS = { good: "M6 12.5l4 4 8-9", busy: "M12 7v5l3.5 2", warn: "M12 6.5v7M12 17v.5", bad: "M8 8l8 8M16 8l-8 8" };

const slot = document.getElementById("wallets");
const words = JSON.parse(slot.dataset.words);
let wallets = [];
let stop = null;
let family = null;
let view = { name: "choose" };

/** What is to be paid now, by the page; null where nothing is. */
function payable() {
  const element = document.getElementById("payable");
  const told = element && JSON.parse(element.dataset.payable);
  if (!told) return null;
  const payment = told.family === "evm" ? evm.asked(told.uri) : null;
  return told.family === "evm" && !payment ? null : { ...told, payment };
}

/** A message of the page's language with `values` in its places, each of them read from left to right where it stands. */
function say(key, values = {}) {
  const place = (found, name) => (name in values ? `\u2068${values[name]}\u2069` : found);
  return (words[key] ?? words.refused).replace(/\{([A-Za-z]+)\}/g, place);
}

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.addEventListener("click", value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// A transaction that was sent is kept with this entry of the tab's history: it outlives a reload, and nothing else.
const sent = () => (history.state?.sent && Date.now() - history.state.sent.at < SENT_MS ? history.state.sent : null);
const keep = (value) => history.replaceState({ ...history.state, sent: value }, "");

/** Whether the invoice's record names the transaction among its payments: then the page itself says how it stands. */
function isSeen(txid) {
  const { payments = [] } = JSON.parse(document.getElementById("checkout").dataset.shown);
  return payments.some((payment) => String(payment.txId).toLowerCase() === txid.toLowerCase());
}

function offer(wallet) {
  const image = wallet.icon ? make("img", { src: wallet.icon, alt: "", width: "28", height: "28" }) : "";
  const name = make("bdi", {}, wallet.name ?? words.other);
  return make("button", { type: "button", class: "offer wallet", onclick: () => begin(wallet) }, image, name);
}

/** The drawing beside a state, as the page itself has it (`web.parts.icon`). */
function icon(tone) {
  const space = "http://www.w3.org/2000/svg";
  const drawn = document.createElementNS(space, "svg");
  drawn.setAttribute("viewBox", "0 0 24 24");
  drawn.setAttribute("aria-hidden", "true");
  for (const [name, attributes] of [["circle", { cx: 12, cy: 12, r: 11 }], ["path", { d: ICONS[tone] }]]) {
    const part = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
    drawn.append(part);
  }
  return drawn;
}

function told(tone, text, ...more) {
  return make("div", { class: `state ${tone}`, tabindex: "-1" }, icon(tone), make("div", {}, make("p", {}, text), ...more));
}

const button = (text, go, look = "") => make("button", { type: "button", class: `button ${look}`.trim(), onclick: go }, text);

function explorer(now, txid) {
  if (!/^https?:\/\//.test(now?.explorer ?? "")) return make("code", { dir: "ltr" }, txid);
  return make("a", { href: now.explorer + txid, target: "_blank", rel: "noreferrer noopener", dir: "ltr" }, txid);
}

const VIEWS = {
  choose: () => [make("div", { class: "offers" }, ...wallets.map(offer))],
  busy: () => [told("busy", view.text)],
  ask: () => [told("warn", view.text), button(view.label, view.go), button(words.back, restart, "quiet")],
  problem: () => [told("bad", view.text), button(view.label ?? words.again, view.go ?? restart, "quiet")],
  sent: (now) => [told("good", words.sent, make("p", {}, explorer(now, view.txid))), button(words.failed, forget, "quiet")],
};

function draw() {
  const now = payable();
  const sending = sent();
  if (sending && !isSeen(sending.txid)) view = { name: "sent", txid: sending.txid };
  else if (view.name === "sent") view = { name: "choose" };
  slot.hidden = !now || (view.name === "choose" && wallets.length === 0);
  // What was sent is not asked for again: neither here, nor by the address.
  const over = !slot.hidden && view.name === "sent";
  for (const part of document.querySelectorAll("[data-part=pay], [data-part=choice]")) part.hidden = over;
  if (slot.hidden) return;
  slot.replaceChildren(make("h2", { class: "label" }, words.title), make("div", { role: "status" }, ...VIEWS[view.name](now)));
}

/** Show another view, and lead the keyboard and the screen reader to it. */
function show(next) {
  view = next;
  draw();
  slot.querySelector(".state, .offer")?.focus();
}

const busy = (key, values) => show({ name: "busy", text: say(key, values) });
const restart = () => show({ name: "choose" });

function forget() {
  keep(undefined);
  restart();
}

/** What a wallet says: text, or an error. */
const messageOf = (error) => String((typeof error === "string" ? error : error?.message) ?? "");

/** TronLink knows no code for it. */
const isDeclined = (error) => evm.codeOf(error) === DECLINED || /declined|rejected|denied|cancell?ed/i.test(messageOf(error));

function fail(error, values) {
  if (error instanceof evm.Problem) return show({ name: "problem", text: say(error.key, { ...values, ...error.values }) });
  if (isDeclined(error)) return show({ name: "problem", text: say("declined", values) });
  if (evm.codeOf(error) === WAITING) return show({ name: "problem", text: say("waiting", values) });
  const reason = messageOf(error).replace(/\s+/g, " ").slice(0, MOST_REASON);
  return show({ name: "problem", text: say("refused", { ...values, reason }) });
}

/** A promise of the payer's consent to the step that `label` names. */
const consent = (text, label) => new Promise((go) => show({ name: "ask", text, label, go: () => go() }));

async function begin(wallet) {
  const now = payable();
  if (!now) return;
  const { network, symbol, shown: amount, native: coin } = now;
  const values = { wallet: wallet.name ?? words.other, network, symbol, amount, coin };
  try {
    busy("connect", values);
    const txid = await (now.family === "tron" ? byTron : byEvm)(wallet.provider, now, values);
    keep({ txid, at: Date.now() });
    show({ name: "sent", txid });
  } catch (error) {
    fail(error, values);
  }
}

async function byEvm(provider, now, values) {
  const account = await evm.connect(provider);
  if (!(await evm.isThere(provider, now.payment))) {
    await consent(say("wrongNetwork", values), say("switch", values));
    busy("switching", values);
    await switched(() => evm.switchTo(provider, now.payment, now.chain), now);
  }
  await evm.demandFunds(provider, now.payment, account, now.decimals);
  await demandSame(now);
  busy("confirm", values);
  return evm.pay(provider, now.payment, account);
}

async function switched(run, now) {
  try {
    await run();
  } catch (error) {
    if (error instanceof evm.Problem && now.simulated) throw new evm.Problem("simulated");
    throw error;
  }
}

async function byTron(wallet, now, values) {
  const account = await tron.connect(wallet);
  if (!(await tron.isThere(wallet, now.tronChain))) {
    await consent(say("wrongNetwork", values), say("switch", values));
    busy("switching", values);
    await tron.switchTo(wallet, now.tronChain);
  }
  const path = `${now.own}/transaction`;
  await demandSame(now);
  busy("confirm", values);
  const signed = await tron.sign(wallet, path, account);
  busy("sending", values);
  return handedOver(path, signed, values);
}

/** Send a signed transaction until there is an answer: the payer decides whether to try again, and the same one is sent. */
async function handedOver(path, signed, values) {
  for (;;) {
    try {
      return await tron.send(path, signed);
    } catch (error) {
      if (error.key !== "notSent") throw error;
      await new Promise((go) => show({ name: "problem", text: say("notSent", values), label: words.resend, go: () => go() }));
      busy("sending", values);
    }
  }
}

/** Raises Problem where the invoice asks for something else by now: it was paid, its time is over, or the rate is a new one. */
async function demandSame(now) {
  const answer = await fetch(`${now.own}/status`, { cache: "no-store", credentials: "omit" });
  const shown = answer.ok ? await answer.json() : {};
  if (shown.paymentUri !== now.uri) throw new evm.Problem("changed");
}

/** The page has changed: another coin, another amount, or nothing to pay any more. */
function follow() {
  const wanted = payable()?.family ?? null;
  if (wanted !== family) {
    family = wanted;
    stop?.();
    wallets = [];
    view = { name: "choose" };
    stop = wanted ? watch(wanted, (found) => { wallets = found; if (view.name === "choose") draw(); }) : null;
  }
  if (view.name === "choose" || view.name === "sent") draw();
  else slot.hidden = !wanted;
}

document.addEventListener("checkout", follow);
follow();
