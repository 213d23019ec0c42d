// The fields of a webhook's forms.
import { EVENTS, NAMES } from "./words.js";

const url = (value) => ({
  name: "url", label: "URL", kind: "text", required: true, value, mono: true, example: "https://shop.example/webhooks",
    most: 2048,
  hint: "Where events are sent by POST: https, and a public host.",
});
const which = (value) => ({
  name: "which", label: "What it is told", kind: "select", required: true, value,
    options: [["all", "Everything"], ["some", "Some events"]],
});
const some = (values) => values.which === "some";

/** Fields for a webhook; `webhook` is the one that changes, null for a new one. */
export function webhookFields(webhook = null) {
  const chosen = webhook?.events ?? ["*"];
  const all = chosen.includes("*");
  const groups = Object.entries(EVENTS).map(([about, events]) => ({
    name: `events ${about}`, label: about, kind: "checks", options: events.map(([name, words]) => [name, `${words} (${name})`]),
    value: all ? [] : events.map(([name]) => name).filter((name) => chosen.includes(name)), when: some,
  }));
  return [url(webhook?.url), which(all ? "all" : "some"), ...groups];
}

/** What a form's values say, as the API takes it. Raises RangeError where no event is chosen. */
export function webhookBody(values) {
  if (values.which === "all") return { url: values.url, events: ["*"] };
  const events = NAMES.filter((name) => Object.keys(EVENTS).some((about) => values[`events ${about}`]?.includes(name)));
  if (events.length === 0) throw new RangeError("Choose at least one event, or everything.");
  return { url: values.url, events };
}

/** Fields for a new secret of an endpoint. */
export const ROTATION = [
  {
    name: "overlap", label: "The old secret goes on for", kind: "select", required: true, value: "86400",
    options: [["0", "No time: it ends at once"], ["3600", "1 hour"], ["86400", "1 day"], ["604800", "7 days"]],
    hint: "So long every delivery is signed with both, and you can change your receiver in peace.",
  },
];

/** Fields for sending the events of a time again. */
export const REDELIVERY = [
  { name: "from", label: "From", kind: "time", required: true, hint: "Events are kept for 30 days." },
  { name: "to", label: "To", kind: "time", hint: "Now, without it." },
  {
    name: "which", label: "Which events", kind: "select", required: true, value: "missed",
    options: [["missed", "What it was never sent with success"], ["all", "All, also what was delivered"]],
  },
];
