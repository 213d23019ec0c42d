// A list saved as CSV, however long it is: walks the list's cursor page by page, waits where the key's limit asks for it, and
// goes on after an error from where it stopped. Nothing of it is kept outside of this tab's memory.
import { csvHead, csvLines } from "./csv.js";

export const AT_ONCE = 10_000;
/** Rows of one request: the most that the API gives. */
const PAGE = 100;
/** After so many requests the job leaves room for other requests of the same key. */
const HURRIED = 30;
const TRIES = [1_000, 4_000, 16_000];
/** Of an hour's window: nobody waits longer in one piece. */
const LONGEST_REST = 3_600;

/** The query of a list without its page and its order: an export has all rows, in order of time, which alone can be walked. */
export function wholeList(query = {}) {
  const { page, cursor, sort, order, limit, perPage, ...filters } = query;
  return { ...filters, limit: PAGE };
}

/**
 * One export. `ask(query, signal)` reads a page as `{ data, page }`; `columns` are `{ label, value(row) }`; `id(row)` names a
 * row; `rest` milliseconds lie between two requests once many were sent; `sleep(ms, signal)` waits.
 *
 * The list is newest first, and a cursor goes on behind the last row that was read: what arrives meanwhile lies before it. So
 * no row that was there at the beginning is lost, and none comes twice. `tell()` is called whenever `state` is another one:
 * `phase` is "running", "waiting" (for `until`, in milliseconds), "failed" (with `error`), "cancelled" or "done". `covers` is
 * the day from which on the rows are all there are, as the last page said it; null where nothing is archived.
 */
export class ExportJob {
  constructor({ ask, query, columns, id = (row) => row.id, rest = 250, sleep = pause, now = Date.now, tell = () => {} }) {
    Object.assign(this, { ask, columns, id, rest, sleep, now, tell });
    this.query = wholeList(query);
    this.cursor = null;
    this.seen = new Set();
    this.parts = ["\uFEFF", csvHead(columns)];
    this.requests = 0;
    this.ended = null;
    this.state = { phase: "running", rows: 0, total: null, more: true, error: null, until: null, last: null,
      covers: null };
  }

  /** Go on to the end, from where it stopped. It never throws: `state` says how it went. */
  async run() {
    if (this.ended && !this.ended.signal.aborted) return;
    const ended = (this.ended = new AbortController());
    this.put({ phase: "running", error: null, until: null });
    try {
      while (this.state.more && !ended.signal.aborted) {
        await this.step(ended.signal);
        if (this.state.more && this.requests > HURRIED && this.rest > 0) await this.sleep(this.rest, ended.signal);
      }
      if (!ended.signal.aborted) this.put({ phase: "done" });
    } catch (error) {
      if (!ended.signal.aborted) this.put({ phase: "failed", error, until: null });
    } finally {
      ended.abort();
    }
  }

  /** Stop. What was read is forgotten. */
  cancel() {
    this.ended?.abort();
    this.parts = [];
    this.seen.clear();
    this.put({ phase: "cancelled", until: null });
  }

  /** The file's text in pieces, as a Blob takes them. */
  get text() {
    return this.parts;
  }

  async step(signal) {
    const query = this.cursor === null ? this.query : { ...this.query, cursor: this.cursor };
    const { data, page } = await this.read(query, signal);
    if (signal.aborted) return;
    const fresh = data.filter((row) => !this.seen.has(this.id(row)));
    for (const row of fresh) this.seen.add(this.id(row));
    if (fresh.length > 0) this.parts.push(csvLines(this.columns, fresh));
    const next = page?.next_cursor ?? null;
    const more = Boolean(page?.has_next && next !== null);
    if (more && next === this.cursor) throw new Error("The list does not go on: its cursor stayed where it was.");
    this.cursor = next;
    const total = this.state.total ?? (page && page.total !== null && !page.total_capped ? page.total : null);
    const covers = page?.covers_from ?? this.state.covers;
    const last = data.at(-1) ?? this.state.last;
    this.put({ phase: "running", until: null, rows: this.seen.size, more, total, last, covers });
  }

  /** One page. Waits where the key's limit asks for it, and tries again a few times where nobody answered. */
  async read(query, signal) {
    for (let tries = 0; ; ) {
      this.requests += 1;
      try {
        return await this.ask(query, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        let wait = TRIES[tries];
        if (error?.status === 429) wait = Math.min(LONGEST_REST, error.retryAfter ?? 60) * 1000;
        else if (wait === undefined || (error?.status !== 0 && !(error?.status >= 500))) throw error;
        else tries += 1;
        this.put({ phase: "waiting", until: this.now() + wait, error });
        await this.sleep(wait, signal);
        if (signal.aborted) throw error;
        this.put({ phase: "running", until: null, error: null });
      }
    }
  }

  put(change) {
    this.state = { ...this.state, ...change };
    this.tell();
  }
}

/** Wait so many milliseconds, or until the signal. */
function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
