// What a payment was worth when it was made.
import { fiat } from "../app/format.js";
import { html } from "../app/ui.js";

/** A value in fiat and who said so. */
export function FiatValue({ value }) {
  if (!value) return html`<span class="soft">Unknown</span>`;
  return html`<span>${fiat(value.amount, value.currency)} <span class="soft">${value.source}</span></span>`;
}
