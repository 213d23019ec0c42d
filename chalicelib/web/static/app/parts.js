// The pieces that every page is made of: headings, cards, notices, badges, values that can be copied, links that can be
// trusted.
import { amount, fiat, moment, shorten, since, utc, webLink, words } from "./format.js";
import { arriving } from "./router.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";

/** What the document's title ends with: the shell sets it. */
export const place = { name: "" };

/** A page: its heading takes the focus when somebody comes here, and names the tab. `actions` stand beside it. */
export function Page({ title, actions, lead, children }) {
  const heading = useRef(null);
  useLayoutEffect(() => {
    document.title = place.name ? `${title} · ${place.name}` : title;
    if (arriving.now) {
      arriving.now = false;
      heading.current?.focus();
      scrollTo(0, 0);
    }
  }, [title]);
  return html`<div class="page">
    <header class="top"><h1 tabindex="-1" ref=${heading} dir="auto">${title}</h1>
      ${actions && html`<div class="actions">${actions}</div>`}</header>
    ${lead && html`<p class="lead">${lead}</p>`}
    ${children}
  </div>`;
}

export function Card({ title, actions, children, class: name = "" }) {
  return html`<section class=${`card ${name}`} aria-label=${title}>
    ${title && html`<header class="top"><h2>${title}</h2>${actions && html`<div class="actions">${actions}</div>`}</header>`}
    ${children}
  </section>`;
}

const DRAWINGS = {
  good: "M6 12.5l4 4 8-9", busy: "M12 7v5l3.5 2", calm: "M12 11v6M12 7v.5", warn: "M12 6.5v7M12 17v.5",
  bad: "M8 8l8 8M16 8l-8 8",
};

export function Icon({ tone }) {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><circle cx="12" cy="12" r="11" />
    <path d=${DRAWINGS[tone]} /></svg>`;
}

/** How things stand. Tones: good, busy, calm, warn, bad. What is bad is read out at once. */
export function Notice({ tone = "calm", title, actions, children }) {
  return html`<div class=${`notice ${tone}`} role=${tone === "bad" ? "alert" : "status"}>
    <${Icon} tone=${tone} />
    <div>${title && html`<p class="title">${title}</p>`}<div class="said">${children}</div>
      ${actions && html`<div class="actions">${actions}</div>`}</div>
  </div>`;
}

/** In place of an empty list: what would be here, and what to do. */
export function Empty({ title = "Nothing here yet", actions, children }) {
  return html`<div class="empty"><p class="title">${title}</p>${children && html`<p>${children}</p>`}
    ${actions && html`<div class="actions">${actions}</div>`}</div>`;
}

/** Something is on its way. It shows itself after a moment, so that quick answers do not flicker. */
export function Loading({ children = "Loading…" }) {
  return html`<p class="loading" role="status"><span class="spinner" aria-hidden="true"></span>${children}</p>`;
}

const ADVICE = {
  INVALID_API_KEY: "Sign in again.",
  EXPIRED_API_KEY: "Sign in with another key.",
  INSUFFICIENT_PERMISSIONS: "Sign in with a key that may do this, or ask who made this one to change it.",
  IP_NOT_WHITELISTED: "This key may not be used from where you are. Use another key, or add your address to its restrictions.",
  NOT_FOUND: "Look at the address again: it may belong to another merchant, or to the other environment (test or live).",
  RATE_LIMIT_EXCEEDED: "Wait a little, then try again.",
  INSUFFICIENT_BALANCE: "Choose a smaller amount, or wait until more has arrived.",
  DAILY_LIMIT_EXCEEDED: "Wait until the limit has room again, or choose a smaller amount.",
  INTERNAL_ERROR: "Try again in a minute. If it goes on, tell the operator the number below.",
  NO_ANSWER: "Look whether it was done before you do it again.",
  NO_CONNECTION: "Look at your connection, then try again.",
  UNREADABLE: "Something between you and the service may be in the way. Try again.",
};

/** What to do about a failure, in a sentence. */
export function advice(error) {
  if (error?.code === "RATE_LIMIT_EXCEEDED" && error.retryAfter) return `Wait ${error.retryAfter} seconds, then try again.`;
  return ADVICE[error?.code] ?? (error?.status >= 500 ? ADVICE.INTERNAL_ERROR : "");
}

/** A failure: what happened, what to do about it, and a button to try again. */
export function Failure({ error, again, title }) {
  if (!error) return null;
  const fields = (error.fields ?? []).map((each) => `${words(each.field)}: ${each.constraints.join(", ")}`);
  return html`<${Notice} tone="bad" title=${title ?? error.message}
    actions=${again && html`<${Button} tone="quiet" onClick=${again}>Try again<//>`}>
    ${title && html`<p>${error.message}</p>`}
    ${fields.map((text) => html`<p>${text}</p>`)}
    ${advice(error) && html`<p>${advice(error)}</p>`}
    ${error.requestId && html`<p class="fine">Request ${error.requestId}</p>`}
  <//>`;
}

const TONES = {
  good: ["completed", "confirmed", "active", "paid", "delivered", "success", "succeeded", "ok", "accepted", "on",
    "healthy", "released"],
  busy: ["confirming", "processing", "broadcasting", "running", "detected", "sending", "claimed"],
  warn: ["partial", "held", "late", "paused", "halted", "retrying", "awaiting_approval", "sold_out", "suspended",
    "inactive", "lagging"],
  bad: ["failed", "expired", "rejected", "orphaned", "revoked", "disabled", "dead", "error", "unhealthy"],
};

/** The tone of a status: anything unknown is calm. */
const toneOf = (value) => Object.keys(TONES).find((tone) => TONES[tone].includes(String(value).toLowerCase())) ?? "calm";

/** A badge. `label` in place of the status' own name. */
export function Status({ value, label, tone }) {
  return html`<span class=${`badge ${tone ?? toneOf(value)}`}>${label ?? words(value)}</span>`;
}

/** Facts: rows are [label, node]; those whose node is null, undefined, false or "" are left out. */
export function Facts({ rows }) {
  const shown = rows.filter((row) => row && row[1] !== null && row[1] !== undefined && row[1] !== false && row[1] !== "");
  return html`<dl class="facts">
    ${shown.map(([label, node]) => html`<div><dt>${label}</dt><dd dir="auto">${node}</dd></div>`)}</dl>`;
}

/** Copies `value`. Says that it did, also to a screen reader; where the browser refuses, it says so. */
export function Copy({ value, label = "Copy", what = "" }) {
  const [said, say] = useState("");
  useEffect(() => {
    const timer = said && setTimeout(() => say(""), 2000);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(String(value));
      say("Copied");
    } catch {
      say("Not copied: mark it instead");
    }
  };
  return html`<button type="button" class="copy" onClick=${copy} aria-label=${what ? `${label}: ${what}` : null}>
    <span aria-live="polite">${said || label}</span></button>`;
}

/** A hash, an address, an id: shortened in its middle, whole where somebody points at it, and to a screen reader. */
export function Code({ value, head, tail, what, children }) {
  if (value === null || value === undefined || value === "") return null;
  const short = children ?? shorten(value, head, tail);
  const whole = String(value);
  return html`<span class="code">${
    short === whole
      ? html`<code>${whole}</code>`
      : html`<code class="short" aria-hidden="true">${short}</code><code class="whole">${whole}</code>`
  }<${Copy} value=${value} what=${what ?? whole} /></span>`;
}

/** The same without a button, for inside of links. */
export function Short({ value, head, tail }) {
  const short = shorten(value, head, tail);
  if (short === String(value)) return html`<code>${short}</code>`;
  return html`<code title=${value}><span aria-hidden="true">${short}</span><span class="hidden">${value}</span></code>`;
}

/** A moment in the reader's zone; UTC where somebody points at it. `ago`: how long ago beside it. */
export function Time({ at, ago = false }) {
  if (!at) return null;
  return html`<time datetime=${new Date(at).toISOString()} title=${utc(at)}>
    ${moment(at)}${ago && html` <span class="soft">(${since(at)})</span>`}</time>`;
}

/** An amount of a coin. It is marked whole and plain; `approx` is its worth in US dollars. */
export function Amount({ value, symbol, usd }) {
  if (value === null || value === undefined) return null;
  return html`<span class="amount"><span class="figure">${amount(value)}</span>
    ${symbol && html` <span class="unit">${String(symbol).toUpperCase()}</span>`}${
    usd !== undefined && usd !== null && html` <span class="soft">${fiat(usd)}</span>`
  }</span>`;
}

/** A link out of here. What is no web address is shown as text. */
export function Out({ href, children }) {
  const checked = webLink(href);
  if (!checked) return html`<span>${children ?? href}</span>`;
  return html`<a href=${checked} target="_blank" rel="noopener noreferrer">${children ?? checked}
    <span class="hidden"> (opens a new tab)</span><span aria-hidden="true"> ↗</span></a>`;
}

export function Progress({ value, max = 100, label, children }) {
  return html`<div class="progress"><progress value=${value} max=${max} aria-label=${label}></progress>
    <p role="status">${children ?? `${value} of ${max}`}</p></div>`;
}

/** Tabs: `tabs` are [[name, label]…]; `chosen` is a name; `choose(name)`. Arrow keys go from one to the next. */
export function Tabs({ label, tabs, chosen, choose, children }) {
  const list = useRef(null);
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (tabs.findIndex(([name]) => name === chosen) + step + tabs.length) % tabs.length;
    choose(tabs[next][0]);
    list.current.querySelectorAll("[role=tab]")[next].focus();
  };
  return html`<div class="tabs">
    <div role="tablist" aria-label=${label} ref=${list} onKeyDown=${move}>${tabs.map(
      ([name, text]) => html`<button type="button" role="tab" key=${name} id=${`tab-${name}`}
        aria-selected=${name === chosen ? "true" : "false"}
        aria-controls=${name === chosen ? "tab-panel" : null} tabindex=${name === chosen ? 0 : -1}
        onClick=${() => choose(name)}>${text}</button>`,
    )}</div>
    <div role="tabpanel" id="tab-panel" aria-labelledby=${`tab-${chosen}`}>${children}</div>
  </div>`;
}

/** A button. Tones: main (the default), quiet, danger. While `busy` it can not be pressed again. */
export function Button({ tone = "main", busy = false, type = "button", onClick, children, ...rest }) {
  return html`<button type=${type} class=${`button ${tone}`} aria-disabled=${busy ? "true" : null}
    aria-busy=${busy ? "true" : null}
    onClick=${(event) => (busy ? event.preventDefault() : onClick?.(event))} ...${rest}>
    ${busy && html`<span class="spinner" aria-hidden="true"></span>`}${children}</button>`;
}
