// From which day on a list has everything: where old payments are archived, the API says it with each page (`covers_from`).
import { day } from "./format.js";

/** The sentence for such a day, "2025-10-19" in UTC. */
export const coverage = (from) =>
  `This list has everything from ${day(from, "UTC")} (UTC) on; earlier payments that are settled may be missing: `
  + "the API still gives each by its id, externalId, address or hash.";

/** Whether the list's query also asks for what was made before that day: without a beginning it does. */
export function asksBefore(from, query = {}) {
  if (!from) return false;
  const begins = query["createdAt[gte]"] ?? query["created_at[gte]"];
  return !begins || begins.slice(0, 10) < from;
}
