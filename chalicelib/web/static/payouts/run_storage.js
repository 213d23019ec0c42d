// The run of payouts under way, in this tab's storage: after a reload it goes on with the same keys. There is no secret in it.
const PLACE = "gateway-payouts";

/** The run that this tab has not ended, of the API key with id `by`; null for none. */
export function kept(by) {
  try {
    const run = JSON.parse(sessionStorage.getItem(PLACE));
    return run && run.by === by && Array.isArray(run.batches) ? settledDown(run) : null;
  } catch {
    return null;
  }
}

/** A batch that was being sent when the page went away may have been accepted. */
function settledDown(run) {
  const lost = { state: "unknown", words: "the page was left before the answer came." };
  return { ...run, batches: run.batches.map((batch) => (batch.state === "sending" ? { ...batch, ...lost } : batch)) };
}

/** Keep a run. Raises nothing: where the storage is full, the keys still follow from the file. */
export function keep(run) {
  try {
    sessionStorage.setItem(PLACE, JSON.stringify(run));
  } catch (error) {
    console.warn("the run is not kept:", error.name);
  }
}

export function forget() {
  sessionStorage.removeItem(PLACE);
}
