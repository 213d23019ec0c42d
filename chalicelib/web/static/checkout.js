// Copies, counts down, and asks how the payment stands. What has changed is taken from the page itself, asked for again:
// what stands in it is said in one place alone, and this script writes no HTML.
"use strict";
(() => {
  const OPEN = 3000, SETTLED = 30000, INTERRUPTED = 8000;
  const element = (id) => document.getElementById(id);
  const card = () => element("checkout");
  if (!card()) return;
  document.documentElement.classList.add("js");

  let known = JSON.stringify(JSON.parse(card().dataset.shown));
  let ends = performance.now() + Number(card().dataset.left) * 1000;
  let timer = 0, asking = false, over = Number(card().dataset.left) === 0;

  function count() {
    const left = Math.max(0, Math.ceil((ends - performance.now()) / 1000));
    const two = (number) => String(number).padStart(2, "0");
    const shown = element("left");
    if (shown) {
      const hours = Math.floor(left / 3600);
      shown.textContent = `${hours ? `${hours}:` : ""}${two(Math.floor(left / 60) % 60)}:${two(left % 60)}`;
      shown.classList.toggle("soon", left < 120);
    }
    if (left === 0 && !over) { over = true; ask(); }
  }

  // Part by part, and only what is new: a selection stays, and a screen reader hears what has happened.
  function takeOver(fresh) {
    const next = fresh.getElementById("checkout");
    for (const part of next.querySelectorAll("[data-part]")) {
      const old = card().querySelector(`[data-part=${part.dataset.part}]`);
      old.className = part.className;
      if (old.innerHTML !== part.innerHTML) old.replaceChildren(...document.importNode(part, true).childNodes);
    }
    card().className = next.className;
    document.title = fresh.title;
    known = JSON.stringify(JSON.parse(next.dataset.shown));
    ends = performance.now() + Number(next.dataset.left) * 1000;
    over = Number(next.dataset.left) === 0;
    count();
  }

  async function look() {
    const answer = await fetch(card().dataset.ask);
    if (answer.status === 404) return location.assign(card().dataset.page);
    if (!answer.ok) throw new Error(answer.status);
    const { expiresIn, lockedIn, accept, ...shown } = await answer.json();
    ends = performance.now() + expiresIn * 1000;
    if (JSON.stringify(shown) !== known) {
      const page = await fetch(card().dataset.page, { cache: "no-store" });
      if (!page.ok) throw new Error(page.status);
      takeOver(new DOMParser().parseFromString(await page.text(), "text/html"));
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
    const source = element(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    } catch { // not allowed here: what is selected can be copied by hand
      getSelection().selectAllChildren(source);
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copy(button);
  });
  document.addEventListener("visibilitychange", ask);
  setInterval(count, 500);
  count();
  timer = setTimeout(ask, OPEN);
})();
