// The checkout page: copies, counts down, searches coins, and asks how the payment stands. What has changed is taken from the
// page itself, asked for again: what stands in it is said in one place alone, and this script writes no HTML.
// Other modules hear of it by the event "checkout", and read the invoice's record in the card's data-shown.
import { clock, localTimes, matches } from "./texts.js";

const OPEN = 3000, SETTLED = 30000, INTERRUPTED = 8000;
const element = (id) => document.getElementById(id);
const lang = document.documentElement.lang;

let known = "";
let parts = new Map();
let ends = 0, lockEnds = null, over = false, lockOver = false;
let timer = 0, asking = false;

/** What the page follows, in the form in which the server wrote it. */
const follows = ({ expiresIn, lockedIn, accept, ...rest }) => JSON.stringify(rest);

/** Seconds that are left until `end`, at least 0. */
const left = (end) => Math.max(0, Math.ceil((end - performance.now()) / 1000));

function setClocks(expiresIn, lockedIn) {
  const now = performance.now();
  ends = now + Number(expiresIn) * 1000;
  over = Number(expiresIn) === 0;
  const locked = lockedIn !== undefined && lockedIn !== "";
  lockEnds = locked ? now + Number(lockedIn) * 1000 : null;
  lockOver = !locked || Number(lockedIn) === 0;
}

function count() {
  const shown = element("left"), lock = element("lock");
  if (shown) {
    shown.textContent = clock(left(ends));
    shown.classList.toggle("soon", left(ends) < 120);
  }
  if (lock && lockEnds !== null) lock.textContent = `(${clock(left(lockEnds))})`;
  if (!over && left(ends) === 0) { over = true; ask(); }
  // The first look after a lock's end quotes anew.
  if (!lockOver && left(lockEnds) === 0) { lockOver = true; ask(); }
}

/** Shows the offers that match the search field, where the page has one. */
function searched() {
  const query = element("query");
  const offers = element("offers");
  if (!query || !offers) return;
  const found = [...offers.children].filter((form) => {
    form.hidden = !matches(form.dataset.text, query.value);
    return !form.hidden;
  });
  element("none").hidden = found.length > 0;
}

/** Keeps what is typed, and where the reader is, while `change` puts a new list in the old one's place. */
function keepingSearch(change) {
  const before = element("query");
  const typed = before && { value: before.value, focused: document.activeElement === before };
  change();
  const after = element("query");
  if (!typed || !after) return;
  after.value = typed.value;
  if (typed.focused) after.focus();
  searched();
}

/** The server's HTML of each part: what scripts and the reader have changed in the page since is no difference. */
const partsOf = (card) => new Map([...card.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part.innerHTML]));

/** Whether the same coin is asked for at another amount, though nothing was paid: its rate was renewed. */
function renewed(before, after) {
  const same = (name) => JSON.stringify(before[name]) === JSON.stringify(after[name]);
  return ["currency", "network", "received", "unconfirmed", "payments", "status"].every(same) && !same("missing");
}

// Part by part, and only what is new: a selection stays, and a screen reader hears what has happened.
function takeOver(fresh) {
  const card = element("checkout"), next = fresh.getElementById("checkout");
  const before = JSON.parse(card.dataset.shown), after = JSON.parse(next.dataset.shown);
  const changed = partsOf(next);
  keepingSearch(() => {
    for (const part of next.querySelectorAll("[data-part]")) {
      const old = card.querySelector(`[data-part=${part.dataset.part}]`);
      if (!old) continue; // a newer page's: this one was loaded before it was known
      old.className = part.className;
      if (parts.get(part.dataset.part) === changed.get(part.dataset.part)) continue;
      old.replaceChildren(...document.importNode(part, true).childNodes);
    }
  });
  parts = changed;
  card.className = next.className;
  card.dataset.shown = next.dataset.shown;
  document.title = fresh.title;
  known = follows(after);
  setClocks(next.dataset.left, next.dataset.lock);
  element("requoted").hidden = !renewed(before, after);
  localTimes(document, lang);
  count();
  document.dispatchEvent(new CustomEvent("checkout"));
}

async function look() {
  const { ask: status, page } = element("checkout").dataset;
  const answer = await fetch(status);
  if (answer.status === 404) return location.assign(page);
  if (!answer.ok) throw new Error(answer.status);
  const shown = await answer.json();
  if (follows(shown) !== known) {
    const again = await fetch(page, { cache: "no-store" });
    if (!again.ok) throw new Error(again.status);
    takeOver(new DOMParser().parseFromString(await again.text(), "text/html"));
  } else {
    setClocks(shown.expiresIn, shown.lockedIn);
  }
  return /^(pending|partial|confirming)$/.test(shown.status) ? OPEN : SETTLED;
}

async function ask() {
  if (asking || document.hidden) return;
  asking = true;
  clearTimeout(timer);
  let pause = INTERRUPTED;
  try {
    pause = (await look()) ?? SETTLED;
    element("away").hidden = true;
  } catch {
    element("away").hidden = false;
  }
  asking = false;
  timer = setTimeout(ask, pause);
}

async function copy(button) {
  const source = element(button.dataset.copy), words = button.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch { // not allowed here: what is selected can be copied by hand
    getSelection().selectAllChildren(source);
    return;
  }
  if (words === button.dataset.done) return;
  button.textContent = button.dataset.done;
  element("said").textContent = button.dataset.done;
  setTimeout(() => { button.textContent = words; element("said").textContent = ""; }, 1500);
}

/** Wallets are offered once address and QR code are there, and something is to be paid: the page works without them. */
function offerWallets() {
  const slot = element("wallets");
  if (!element("payable") || slot.dataset.offered) return;
  slot.dataset.offered = "true";
  import(new URL(slot.dataset.module, document.baseURI).href);
}

document.documentElement.classList.add("js");
known = follows(JSON.parse(element("checkout").dataset.shown));
parts = partsOf(element("checkout"));
setClocks(element("checkout").dataset.left, element("checkout").dataset.lock);
localTimes(document, lang);
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
  if (event.target.closest("[data-print]")) print();
});
document.addEventListener("input", (event) => { if (event.target.id === "query") searched(); });
document.addEventListener("submit", (event) => { if (event.target.id === "search") event.preventDefault(); });
document.addEventListener("visibilitychange", ask);
document.addEventListener("checkout", offerWallets);
addEventListener("load", offerWallets);
setInterval(count, 500);
count();
timer = setTimeout(ask, OPEN);
