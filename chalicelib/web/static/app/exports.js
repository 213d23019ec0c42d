// Exports of lists as CSV: the button that stands over a list, and how far the export is, on whichever page a person goes to
// meanwhile.
import { get } from "./api.js";
import { asksBefore, coverage } from "./coverage.js";
import { signal, useSignal } from "./signal.js";
import { Ask, useDialog } from "./dialog.js";
import { AT_ONCE, ExportJob } from "./export_job.js";
import { amount, countOf, duration, moment } from "./format.js";
import { saveFile, warnOfLeaving } from "./leaving.js";
import { Button, Notice, Progress, advice } from "./parts.js";
import { isTest, me } from "./session.js";
import { html, useEffect, useState } from "./ui.js";
import { INVOICES, TRANSACTIONS, WITHDRAWALS } from "./export_columns.js";

const COLUMNS = { invoices: INVOICES, transactions: TRANSACTIONS, withdrawals: WITHDRAWALS };
/** A test key may ask 100 times a minute, a live one 1,000 times: the rest is for other requests of the key. */
const REST = { test: 700, live: 200 };

/** The export that is under way or has ended: `{ job, name, label }`; one at a time. */
const current = signal(null);

/** What `List` takes as `exportAs`: a button that saves the whole list, with the filters that are set. `name` as in COLUMNS. */
export const exportOf = (name, label = name) => ({ path, query, page }) =>
  html`<${Export} name=${name} label=${label} path=${path} query=${query} page=${page} />`;

function Export({ name, label, path, query, page }) {
  const [asked, ask, close] = useDialog();
  const running = useSignal(current);
  const busy = Boolean(running && ["running", "waiting", "failed"].includes(running.job.state.phase));
  const many = Boolean(page && (page.total_capped || page.total === null || page.total > AT_ONCE));
  if (!page || page.total === 0) return null;
  const short = asksBefore(page.covers_from, query);
  const start = () => begin({ name, label, path, query, many });
  return html`<${Button} tone="quiet" disabled=${busy} onClick=${() => (many || short ? ask() : start())}>Export CSV<//>
    ${asked && html`<${Ask} title=${`Export ${label}`} action="Start" close=${close} run=${async () => start()}
      words=${html`${short && html`<p>${coverage(page.covers_from)}</p>`}
        ${many && html`<p>${page.total_capped || page.total === null
        ? `There may be more than ${amount(AT_ONCE)} rows.`
        : `There are ${countOf(page.total, "row")}.`} They are read page by page, which takes about
        ${duration((60 * AT_ONCE) / perMinute())} for each ${amount(AT_ONCE)} rows.</p>
        <p>You can go on working in this tab. Leave it open until the file is saved, and stay signed in.</p>`}`} />`}`;
}

const perMinute = () => (60_000 / (isTest() ? REST.test : REST.live)) * 100;

function begin({ name, label, path, query, many }) {
  const rest = isTest() ? REST.test : many ? REST.live : 0;
  const told = { name, label, job: null };
  told.job = new ExportJob({
    ask: (wanted, signal) => get(path, wanted, { signal }),
    query, columns: COLUMNS[name], rest, tell: () => current.set({ ...told }),
  });
  go(told);
}

async function go({ job, name }) {
  const unwarned = warnOfLeaving();
  await job.run();
  unwarned();
  if (job.state.phase === "done") save(job, name);
}

/** Hand the file to the browser. */
function save(job, name) {
  const at = new Date().toISOString().slice(0, 16).replace(/[:T]/g, "-");
  saveFile(new Blob(job.text, { type: "text/csv;charset=utf-8" }), `${name}-${at}.csv`);
}

function forget() {
  current.value?.job.cancel();
  current.set(null);
}

/** How far the export is; nothing where there is none. Drawn over each page. */
export function ExportProgress() {
  const running = useSignal(current);
  useEffect(() => () => {
    // Nobody is signed in any more: the next person at this tab must not get these rows.
    if (!me() && current.value) forget();
  }, []);
  if (!running) return null;
  const { job, name, label } = running;
  const { phase, rows, total, error, until, last, covers } = job.state;
  if (phase === "cancelled") return null;
  const stop = html`<${Button} tone="quiet" onClick=${forget}>${phase === "failed" ? "Give up" : "Cancel"}<//>`;
  if (phase === "done") {
    return html`<${Notice} tone="good" title=${`${countOf(rows, "row")} of ${label} exported`} actions=${html`
      <${Button} tone="quiet" onClick=${() => save(job, name)}>Save the file again<//>
      <${Button} tone="quiet" onClick=${forget}>Close<//>`}>
      <p>The file is in your downloads. Cells that a spreadsheet would take for a formula begin with an apostrophe.</p>
      ${asksBefore(covers, job.query) && html`<p>${coverage(covers)}</p>`}<//>`;
  }
  if (phase === "failed") {
    return html`<${Notice} tone="bad" title=${`The export of ${label} stopped after ${countOf(rows, "row")}`} actions=${html`
      <${Button} onClick=${() => go(running)}>Go on<//>${stop}`}>
      <p>${error?.message}</p>${advice(error) && html`<p>${advice(error)}</p>`}
      <p>Nothing is lost: it goes on behind the last row that was read.</p><//>`;
  }
  return html`<section class="notice busy" aria-label=${`Export of ${label}`}><div>
    <p class="title">Exporting ${label}</p><div class="said">
    <${Progress} value=${total === null ? undefined : rows} max=${total ?? 100} label=${`Export of ${label}`}>
      ${total === null ? countOf(rows, "row") : `${amount(rows)} of ${countOf(total, "row")}`}${reached(last)}<//>
    ${phase === "waiting" && html`<${Waiting} until=${until} error=${error} />`}</div>
    <div class="actions">${stop}</div></div></section>`;
}

/** Down to which time the list was read. */
function reached(row) {
  const at = row?.createdAt ?? row?.created_at;
  return at ? `, back to ${moment(at)}` : "";
}

function Waiting({ until, error }) {
  const [, draw] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => draw((count) => count + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  const left = Math.max(1, Math.round((until - Date.now()) / 1000));
  const why = error?.status === 429 ? "This key has used up its requests for now" : error?.message;
  return html`<p>${why}. It goes on in ${duration(left)}.</p>`;
}
