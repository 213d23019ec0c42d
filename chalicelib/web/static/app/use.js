// Reading from the API in components: one request per path and query, asked again at most four times a minute for the whole
// page.
import { get } from "./api.js";
import { useCallback, useEffect, useRef, useState } from "./ui.js";

const TICK = 15_000;
const waiting = new Set();
let timer = null;
let last = 0;

/**
 * Ask `poll.ask` again every `seconds`, as long as the page is visible. One request each 15 seconds at most, whoever wants
 * more.
 */
function enlist(seconds, ask) {
  const poll = { every: Math.max(15, seconds) * 1000, at: Date.now(), ask };
  waiting.add(poll);
  timer ??= setInterval(tick, 1_000);
  return () => {
    waiting.delete(poll);
    if (waiting.size === 0) {
      clearInterval(timer);
      timer = null;
    }
  };
}

function tick() {
  const now = Date.now();
  if (document.visibilityState !== "visible" || now - last < TICK) return;
  const due = [...waiting].filter((poll) => now - poll.at >= poll.every).sort((a, b) => a.at - b.at);
  if (due.length === 0) return;
  last = now;
  due[0].at = now;
  due[0].ask();
}

const drawn = new Set();

/** Ask anew for everything that the page shows: after something has happened outside of it. */
const askAgain = () => [...drawn].forEach((ask) => ask());

/** The same a few times in the next seconds: for what the service does a moment after it was asked for. */
export const lookSoon = () => [1, 4].forEach((seconds) => setTimeout(askAgain, seconds * 1000));

const NOTHING = { of: null, data: null, page: null, error: null, loading: true };

/**
 * What lies at `path` (null: nothing yet) as `{ data, page, error, loading, again, put }`. With `every` (seconds) it is asked
 * for again while the page is visible. `again()` asks at once; `put(data)` shows what an answer to a change said, without
 * asking. After a failure the data that were there stay, with `error` beside them.
 */
export function useGet(path, query = {}, { every = 0 } = {}) {
  const wanted = path === null ? null : JSON.stringify([path, query]);
  const [state, set] = useState(NOTHING);
  const asked = useRef(null);
  const ask = useCallback(() => {
    if (wanted === null) return;
    asked.current?.abort();
    const own = (asked.current = new AbortController());
    const [where, what] = JSON.parse(wanted);
    set((before) => ({ ...(before.of === wanted ? before : NOTHING), of: wanted, loading: true }));
    get(where, what, { signal: own.signal }).then(
      ({ data, page }) => !own.signal.aborted && set({ of: wanted, data, page, error: null, loading: false }),
      (error) => !own.signal.aborted && set((before) => ({ ...before, error, loading: false })),
    ).finally(() => {
      if (asked.current === own) asked.current = null;
    });
  }, [wanted]);
  // A poll waits for the answer to the last one: given up each time, a service that hangs would never be a failure.
  const poll = useCallback(() => asked.current === null && ask(), [ask]);
  useEffect(() => {
    ask();
    drawn.add(ask);
    return () => {
      drawn.delete(ask);
      asked.current?.abort();
    };
  }, [ask]);
  useEffect(() => (every && wanted !== null ? enlist(every, poll) : undefined), [every, poll, wanted]);
  const keep = useCallback((data) => set((before) => ({ ...before, data })), []);
  // What another address showed must not be taken for this one's: not even for the one drawing before the effect runs.
  const own = wanted !== null && state.of === wanted ? state : { ...NOTHING, loading: wanted !== null };
  return { ...own, again: ask, put: keep };
}
