// A run of payouts under way: progress, what to do when an answer is lost or a batch refused, and the results row by row.
import { at, request } from "../app/api.js";
import { csvHead, csvLines } from "../app/csv.js";
import { Ask, useDialog } from "../app/dialog.js";
import { amount, countOf, moment } from "../app/format.js";
import { saveFile, useLeaveWarning } from "../app/leaving.js";
import { Table } from "../app/list.js";
import { Amount, Button, Card, Code, Notice, Page, Progress, Status } from "../app/parts.js";
import { Link } from "../app/router.js";
import { html, useEffect, useRef, useState } from "../app/ui.js";
import { keep } from "./run_storage.js";
import { progress, results, sendAll } from "./run.js";

const DRAWN = 100;

/** The run itself: how far it is, and what became of each row. */
export function Sending({ run: begun, end }) {
  const [run, show] = useState(begun);
  const [busy, work] = useState(false);
  const [waiting, wait] = useState(null);
  const stop = useRef(false);
  const here = useRef(true);
  const wake = useRef(null);
  /** Waits, unless a person wants it to stop. */
  const pause = (seconds) => new Promise((done) => {
    const timer = setTimeout(done, seconds * 1000);
    wake.current = () => { clearTimeout(timer); done(); };
  });
  const halt = () => {
    stop.current = true;
    wake.current?.();
  };
  const start = async (skipRefused) => {
    stop.current = false;
    work(true);
    const after = await sendAll(run, {
      send: (body, key) => request("POST", "/withdrawals", { body, key }),
      pause: async (seconds) => {
        if (here.current) wait(Date.now() + seconds * 1000);
        await pause(seconds);
        if (here.current) wait(null);
      },
      keep: (next) => { keep(next); if (here.current) show(next); },
      stopped: () => stop.current || !here.current,
    }, { skipRefused });
    keep(after);
    if (!here.current) return;
    show(after);
    work(false);
  };
  useEffect(() => {
    const untouched = begun.batches.every((batch) => batch.state === "waiting" && batch.words === null);
    if (untouched) start(false);
    return () => { here.current = false; wake.current?.(); };
  }, []);
  useLeaveWarning(busy);
  const far = progress(run);
  return html`<${Page} title=${run.name}>
    <${Progress} value=${far.made} max=${far.all}
      label="Payments made">${amount(far.made)} of ${countOf(far.all, "payment")} made${
      waiting ? `: the next try is at ${moment(waiting, { seconds: true })}` : ""}<//>
    <${Verdict} run=${run} far=${far} busy=${busy} />
    <div class="actions">
      ${busy && html`<${Button} tone="quiet" onClick=${halt}>Stop after this batch<//>`}
      ${!busy && far.made < far.all && !run.batches.some((batch) => batch.old) && html`<${Button}
        onClick=${() => start(false)}>${far.unknown > 0 ? "Ask again what became of it" : "Go on"}<//>`}
      ${!busy && far.refused > 0 && far.left > 0 && html`<${Button} tone="quiet"
        onClick=${() => start(true)}>Go on without the refused batch<//>`}
      ${!busy && far.made === far.all && html`<${Link} to="/withdrawals" class="button">To the withdrawals<//>`}
      ${!busy && html`<${Save} run=${run} />`}
      ${!busy && html`<${Done} far=${far} end=${end} />`}
    </div>
    <${Results} run=${run} /><//>`;
}

function Verdict({ run, far, busy }) {
  if (busy) return html`<${Notice} tone="busy"
    title="Sending">Leave this tab open. Each batch is sent once, also when its answer is lost.<//>`;
  const stopped = run.batches.find((batch) => batch.words);
  if (far.made === far.all) {
    const replayed = run.batches.some((batch) => batch.replayed);
    return html`<${Notice} tone="good" title="All payments are made">${replayed
      ? "Some were made before, by the same file under the same name: nothing was paid twice."
      : "Follow them in the list of withdrawals. Large ones may wait for signatures."}<//>`;
  }
  if (far.unknown > 0) {
    return html`<${Notice} tone="warn"
      title="An answer was lost">${countOf(far.unknown, "payment")} may be made or not: ${stopped?.words}${" "}
      ${stopped?.old ? "Look in the list of withdrawals, and pay what is missing by a file of its own."
        : "Ask again: a batch that was made is not made again."}<//>`;
  }
  if (far.refused > 0) return html`<${Notice} tone="bad"
    title="A batch was refused, and none of its payments made">${stopped?.words}<//>`;
  return html`<${Notice} tone="calm" title="Stopped">${stopped?.words ?? "The rest is not sent."}<//>`;
}

/** Puts a run away. Asks first where some of it is not made. */
function Done({ far, end }) {
  const [asked, ask, close] = useDialog();
  const open = far.made < far.all;
  return html`<${Button} tone="quiet" onClick=${open ? () => ask() : end}>${open ? "Give the rest up" : "Done"}<//>
    ${asked && html`<${Ask} title="Give the rest up?" action="Give it up" tone="danger" run=${async () => true}
      words=${`${countOf(far.all - far.made, "payment")} of this run are not known to be made.${far.unknown > 0
        ? " Look in the list of withdrawals before you pay them in another way." : ""} Save the results first.`}
      close=${(yes) => { close(); if (yes) end(); }} />`}`;
}

const SAVED = ["row", "network", "coin", "address", "amount", "withdrawal", "batch", "state", "words"]
  .map((name) => ({ label: name, value: (row) => row[name] }));

/** The results as a file. */
function Save({ run }) {
  const save = () => {
    const lines = [csvHead(SAVED), csvLines(SAVED, results(run))];
    saveFile(new Blob(lines, { type: "text/csv" }), "payouts-results.csv");
  };
  return html`<${Button} tone="quiet" onClick=${save}>Save the results<//>`;
}

const MADE = [
  { name: "row", label: "Row" },
  { name: "address", label: "Address", show: (row) => html`<${Code} value=${row.address} what="address" />` },
  { name: "amount", label: "Amount", align: "end", show: (row) => html`<${Amount} value=${row.amount} symbol=${row.coin} />` },
  { name: "state", label: "Result", show: (row) => html`<${Status} value=${row.state}
    tone=${{ made: "good", refused: "bad", unknown: "warn" }[row.state]} />` },
  { name: "withdrawal", label: "Withdrawal", show: (row) => (row.withdrawal ? html`<${Link}
    to=${at`/withdrawals/${row.withdrawal}`}>Open<//>` : row.words) },
];

function Results({ run }) {
  const [pages, more] = useState(1);
  const rows = results(run);
  const shown = rows.slice(0, pages * DRAWN);
  return html`<${Card} title="Row by row"><${Table} label="Results" rows=${shown} rowKey=${(row) => row.row} columns=${MADE} />
    ${shown.length < rows.length && html`<div class="actions"><${Button} tone="quiet"
      onClick=${() => more(pages + 1)}>Show more<//></div>`}<//>`;
}
