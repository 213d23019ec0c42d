// Sends checked payouts in batches. Each batch has one Idempotency-Key as long as its content is the same: a batch whose answer
// was lost is sent again with it, and pays nothing twice. Knows no page: what it needs is handed to it.
const BATCH = 100;
const TRIES = 4;
const PAUSES = [2, 5, 15]; // seconds before the next try where no answer came
/** The service knows a key for 24 hours from its first request: a batch that was sent longer ago would be paid anew. */
const KNOWN_MS = 23 * 3_600_000;
const TOO_OLD = "it was first sent more than 23 hours ago, and the service may not know it any more.";
const GATEWAY_FAULTS = [500, 502, 503, 504];

/** The rows in batches of one coin and at most 100 payments, in their order. */
export function batchesOf(rows) {
  const made = [];
  const open = new Map();
  for (const row of rows) {
    const place = `${row.network} ${row.coin}`;
    const batch = open.get(place);
    if (batch && batch.rows.length < BATCH) batch.rows.push(row);
    else {
      const next = { network: row.network, coin: row.coin, rows: [row] };
      open.set(place, next);
      made.push(next);
    }
  }
  return made;
}

/** The body of a batch's request. */
function bodyOf(batch, priority) {
  const outputs = batch.rows.map((row) => ({ to_address: row.normalized, amount: row.amount }));
  return { batch_withdrawal: { network: batch.network, coin: batch.coin, outputs, priority } };
}

/**
 * A run of payouts, not begun. A key follows from the run's name and the batch: the same file under the same name is paid once,
 * also from another browser; another `salt` makes other keys. Rows with a number in `without` are left out, and batches that
 * have none of them keep their keys. `digest(text)` is a hash in hex, or null where there is none: `spare()` makes a key then.
 */
export async function runOf({ name, priority, rows, by, salt = "", without = new Set() }, digest, spare) {
  const batches = [];
  for (const [place, whole] of batchesOf(rows).entries()) {
    const batch = { ...whole, rows: whole.rows.filter(({ row }) => !without.has(row)) };
    if (batch.rows.length === 0) continue;
    // Not of the speed: the same payments asked for at another one are refused under the key that they were made with.
    const hash = await digest(JSON.stringify([name, salt, place, bodyOf(batch)]));
    batches.push({ ...batch, key: hash ? `payouts-${hash}` : spare(), state: "waiting", made: [], words: null });
  }
  return { name, priority, by, batches };
}

/** SHA-256 by the browser, in hex; null where it has none (pages that were not loaded over https). */
export async function sha256(text) {
  const subtle = globalThis.crypto?.subtle;
  if (!subtle) return null;
  const bytes = new Uint8Array(await subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** How far a run is, in rows: `{ all, made, refused, unknown, left }`. */
export function progress(run) {
  const of = (states) => run.batches.filter((batch) => states.includes(batch.state));
  const count = (...states) => of(states).reduce((rows, batch) => rows + batch.rows.length, 0);
  return {
    all: count("waiting", "sending", "made", "refused", "unknown"), made: count("made"), refused: count("refused"),
    unknown: count("unknown", "sending"), left: count("waiting"),
  };
}

const changed = (run, place, change) => ({
  ...run, batches: run.batches.map((batch, at) => (at === place ? { ...batch, ...change } : batch)),
});

/**
 * Send what is not made yet, and answer the run as it ends. `tools`: `send(body, key)` asks the API and throws its failures,
 * `pause(seconds)` waits, `keep(run)` stores it (before each request and after each answer), `stopped()` says whether a person
 * wants it to stop. It stops at the first batch that is refused or that no answer comes for; the next call goes on. A batch
 * that was first sent (`since`, ms since 1970) so long ago that the service may have forgotten its key is not sent again
 * (`old`).
 */
export async function sendAll(begun, tools, { skipRefused = false } = {}) {
  let run = begun;
  for (const [place, batch] of run.batches.entries()) {
    if (batch.state === "made" || (skipRefused && batch.state === "refused")) continue;
    if (tools.stopped()) return run;
    const since = batch.since ?? Date.now();
    run = changed(run, place, { state: "sending", words: null, problems: {}, since });
    tools.keep(run);
    run = changed(run, place, await outcome(run, run.batches[place], tools));
    tools.keep(run);
    if (run.batches[place].state !== "made") return run;
  }
  return run;
}

async function outcome(run, batch, tools) {
  let failure = null;
  for (let tried = 0; tried < TRIES; tried += 1) {
    if (Date.now() - batch.since > KNOWN_MS) return { state: "unknown", words: TOO_OLD, old: true };
    try {
      const { data, replayed } = await tools.send(bodyOf(batch, run.priority), batch.key);
      const made = data.withdrawals.map(({ id, status }) => ({ id, status }));
      return { state: "made", id: data.batch_id, replayed: Boolean(replayed), made };
    } catch (error) {
      failure = error;
      const wait = again(error, tried);
      if (wait === null || tools.stopped()) break;
      await tools.pause(wait);
      if (tools.stopped()) break;
    }
  }
  return failed(failure, batch);
}

/** Seconds until the next try; null where another one is of no use. */
function again(error, tried) {
  if (error.status === 429) return Math.max(1, error.retryAfter ?? 60);
  if (error.status === 0 || GATEWAY_FAULTS.includes(error.status)) return PAUSES[tried] ?? null;
  return null;
}

/** A batch after a failure. Without an answer it may have been accepted; a key that was not let in has sent nothing. */
function failed(error, batch) {
  const words = error.message;
  if ([401, 403, 429].includes(error.status)) return { state: "waiting", words };
  if (error.status === 0 || error.status >= 500) return { state: "unknown", words };
  return { state: "refused", words, problems: byRow(error, batch) };
}

/** What the refusal says of single rows, by their number in the file. */
function byRow(error, batch) {
  const alike = Array.isArray(error.details?.fields) ? error.details.fields : [];
  const named = [...alike.map((field) => ({ field, constraints: [error.message] })), ...(error.fields ?? [])];
  const found = {};
  for (const { field, constraints } of named) {
    const place = /(?:^|\.)outputs[.[](\d+)/.exec(field);
    const row = place && batch.rows[Number(place[1])];
    if (row) found[row.row] = [...(found[row.row] ?? []), ...constraints];
  }
  return found;
}

/** One line for each row of a run, for the file that says what became of it. */
export function results(run) {
  return run.batches.flatMap((batch) => batch.rows.map((row, place) => ({
    ...row, batch: batch.id ?? "", withdrawal: batch.made[place]?.id ?? "", state: batch.state,
    words: batch.problems?.[row.row]?.join("; ") ?? batch.words ?? "",
  }))).sort((one, other) => one.row - other.row);
}
