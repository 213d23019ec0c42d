// Words and figures for people. Money is a decimal string from the first to the last line: no float ever holds it.
const AMOUNT = /^(-?)(\d+)(?:\.(\d+))?$/;

/** Whether a text is a plain decimal amount, not negative. */
export const isAmount = (text) => /^\d{1,38}(\.\d{1,38})?$/.test(text);

/** "1234567.50" → "1,234,567.50". Text that is no amount stays as it is. */
export function amount(value) {
  const match = AMOUNT.exec(String(value ?? ""));
  if (!match) return String(value ?? "");
  const whole = match[2].replace(/\B(?=(\d{3})+$)/g, ",");
  return `${match[1]}${whole}${match[3] === undefined ? "" : `.${match[3]}`}`;
}

/**
 * An amount as a whole number of units of 10^-decimals. Raises RangeError for a text that is no amount, or has more decimals.
 */
export function toUnits(text, decimals) {
  const match = AMOUNT.exec(String(text).trim());
  const part = (match?.[3] ?? "").replace(/0+$/, "");
  if (!match || part.length > decimals) throw new RangeError(`not an amount with at most ${decimals} decimals: ${text}`);
  const units = BigInt(match[2] + part.padEnd(decimals, "0"));
  return match[1] ? -units : units;
}

/** Units of 10^-decimals as a plain decimal string without needless zeros. */
export function fromUnits(units, decimals) {
  const digits = (units < 0n ? -units : units).toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const part = digits.slice(digits.length - decimals).replace(/0+$/, "");
  return `${units < 0n ? "-" : ""}${whole}${part && `.${part}`}`;
}

const decimalsOf = (text) => (String(text).split(".")[1] ?? "").length;

/** The sum of decimal strings, exact. */
export function sum(...texts) {
  const decimals = Math.max(0, ...texts.map(decimalsOf));
  return fromUnits(texts.reduce((total, text) => total + toUnits(text, decimals), 0n), decimals);
}

/** `one` less `other`, both decimal strings, exact. */
export function difference(one, other) {
  const decimals = Math.max(decimalsOf(one), decimalsOf(other));
  return fromUnits(toUnits(one, decimals) - toUnits(other, decimals), decimals);
}

/** The sum of US dollars as the API writes them, which is as numbers: a decimal string, to the cent. */
export const sumOfDollars = (values) => sum("0", ...values.map((value) => Number(value).toFixed(2)));

/** -1, 0 or 1: how two decimal strings compare. */
export function compare(one, other) {
  const decimals = Math.max(decimalsOf(one), decimalsOf(other));
  const [a, b] = [toUnits(one, decimals), toUnits(other, decimals)];
  return a < b ? -1 : a > b ? 1 : 0;
}

export const isZero = (text) => compare(text, "0") === 0;

/** A value in a fiat currency: 1234.5 and "EUR" → "1,234.50 EUR"; US dollars get their sign in front. */
export function fiat(value, currency = "USD") {
  if (value === null || value === undefined || value === "") return "";
  const text = typeof value === "number" ? value.toFixed(2) : String(value);
  const [whole, part] = text.split(".");
  const shown = amount(part === undefined ? whole : `${whole}.${currency === "USD" ? part.padEnd(2, "0") : part}`);
  if (currency !== "USD") return `${shown} ${currency}`;
  return shown.startsWith("-") ? `-$${shown.slice(1)}` : `$${shown}`;
}

const formats = new Map();

/** A format of dates: making one takes longer than a hundred uses of it. */
function dates(options) {
  const name = JSON.stringify(options);
  if (!formats.has(name)) formats.set(name, new Intl.DateTimeFormat("en-GB", options));
  return formats.get(name);
}

/** A sum of US dollars, always with its cents: "750" → "$750.00". */
export const dollars = (text) => fiat(String(text).includes(".") ? text : `${text}.00`);

/** A moment in the reader's zone: "1 May 2026, 14:00". `at` is ISO 8601, or milliseconds. */
export function moment(at, { seconds = false, zone } = {}) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return String(at ?? "");
  return dates({
    day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit",
    second: seconds ? "2-digit" : undefined,
    timeZone: zone,
  }).format(date);
}

/** The same moment in UTC, to the second. */
export const utc = (at) => `${moment(at, { seconds: true, zone: "UTC" })} UTC`;

/** A day: "1 May 2026". */
export const day = (at, zone) =>
  dates({ day: "numeric", month: "short", year: "numeric", timeZone: zone }).format(new Date(at));

const STEPS = [["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]];

/** Seconds in words: 5400 → "1 hour 30 minutes". Two units at most. */
export function duration(seconds) {
  let left = Math.max(0, Math.round(seconds));
  if (left === 0) return "0 seconds";
  const parts = [];
  for (const [unit, size] of STEPS) {
    const count = Math.floor(left / size);
    if (count > 0 && parts.length < 2) parts.push(countOf(count, unit));
    else if (parts.length > 0) break;
    left -= count * size;
  }
  return parts.join(" ");
}

/** How long ago, or in how long: "3 minutes ago", "in 2 hours". */
export function since(at, now = Date.now()) {
  const seconds = Math.round((new Date(at).getTime() - now) / 1000);
  if (Math.abs(seconds) < 10) return "just now";
  const [unit, size] = STEPS.find(([, each]) => Math.abs(seconds) >= each);
  const count = countOf(Math.floor(Math.abs(seconds) / size), unit);
  return seconds < 0 ? `${count} ago` : `in ${count}`;
}

/** 1, "invoice" → "1 invoice"; 2 → "2 invoices". */
export const countOf = (count, one, many = `${one}s`) => `${amount(count)} ${count === 1 ? one : many}`;

/** A long text shortened in its middle. */
export function shorten(text, head = 8, tail = 6) {
  const whole = String(text ?? "");
  return whole.length <= head + tail + 3 ? whole : `${whole.slice(0, head)}…${whole.slice(-tail)}`;
}

/** A name of the API for people: "awaiting_claim" → "Awaiting claim". */
export function words(name) {
  const text = String(name ?? "").replaceAll("_", " ").replace(/([a-z])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`);
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A link that may be followed: http or https; null for anything else. */
export function webLink(text) {
  try {
    const url = new URL(String(text));
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}
