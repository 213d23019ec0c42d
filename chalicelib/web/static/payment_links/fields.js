// The fields of a payment link's form, and what the API takes for them.
import { priceFields, priced } from "../invoices/price_fields.js";

/** `link` is the record that is changed; without one it is a new link. */
export function linkFields(coins, link = null) {
  const before = link ?? {};
  return [
    { name: "name", label: "Name", kind: "text", required: true, most: 200, value: before.name,
      hint: "What is sold. The visitor sees it.", example: "Two pairs of shoes" },
    { name: "description", label: "Description", kind: "area", most: 1000, value: before.description,
      hint: "The visitor sees it." },
    ...priceFields(coins, { before, ranged: true }),
    { name: "stock", label: "Pieces", kind: "number", value: before.stock,
      hint: "Empty: any number. Each opened invoice takes one, and gives it back if it is not paid." },
    { name: "expiresAt", label: "Can be opened until", kind: "time", value: before.expiresAt, hint: "Empty: for ever." },
    { name: "redirectUrl", label: "Where to send the payer afterwards", kind: "text", value: before.redirectUrl,
      example: "https://shop.example/thanks" },
    { name: "metadata", label: "Metadata (JSON)", kind: "json", value: before.metadata,
      hint: "It goes to each invoice. No visitor sees it." },
  ];
}

const OPTIONAL = ["description", "stock", "expiresAt", "redirectUrl", "metadata"];
const PRICE = ["amount", "fiatAmount", "fiatCurrency", "currency", "network", "accept"];
const same = (one, other) => JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));

/** With fields in one order, so that equal records are equal text. */
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (!value || typeof value !== "object") return value ?? null;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

export const newLink = (values) => priced(values);

/**
 * What a change sends: the fields that are another now, null for one that was taken away. A price is sent whole or not at all:
 * its parts belong together.
 */
export function changedLink(link, values) {
  const wanted = priced(values);
  const body = {};
  if (wanted.name !== link.name) body.name = wanted.name;
  for (const name of OPTIONAL) {
    const value = wanted[name] ?? null;
    const before = link[name] ?? null;
    // A time is typed to the minute: what was not touched stays as it was to the millisecond.
    const alike = name === "expiresAt" && value && before ? value.slice(0, 16) === before.slice(0, 16) : same(value, before);
    if (!alike) body[name] = value;
  }
  const price = Object.fromEntries(PRICE.filter((name) => wanted[name] !== undefined).map((name) => [name, wanted[name]]));
  if (!PRICE.every((name) => same(price[name], link[name]))) {
    Object.assign(body, price);
    if (link.currency && !price.currency) body.currency = null;
    if (link.accept && !price.accept && !price.currency) body.accept = null;
  }
  return body;
}
