// The fields of a refund's form, and what the API takes for them.
import { isZero } from "../app/format.js";
import { coinKey, coinName, coinOf } from "../catalogue/coin_names.js";

const DAY = 86_400;

/** The coins that came in, as options. */
function paidCoins(invoice) {
  const choices = (invoice.choices ?? []).filter((choice) => !isZero(choice.received));
  if (invoice.choices) return choices.map((each) => [coinKey(each.coin, each.network), coinName(each.coin, each.network)]);
  return [[coinKey(invoice.currency, invoice.network), coinName(invoice.symbol, invoice.network)]];
}

/** The body of the request. */
export function refundOf(values) {
  const { mode, amount, coin, to, address, reason, days, sentBy } = values;
  const body = { mode };
  if (amount) body.amount = amount;
  if (coin) {
    const named = coinOf(coin);
    body.coin = named.coin;
    if (named.network) body.network = named.network;
  }
  if (to === "address") body.address = address;
  else if (days !== undefined) body.expiresIn = Math.round(days * DAY);
  if (to !== "address" && sentBy) body.sentBy = sentBy;
  if (reason) body.reason = reason;
  return body;
}

/** The fields of the form for an invoice. */
export function refundFields(invoice, coins) {
  const paid = paidCoins(invoice);
  const same = (values) => values.mode === "same";
  const inFiat = (values) => values.mode === "fiat";
  const modes = [["same", "The coin that was paid"]];
  if (invoice.fiatCurrency) modes.push(["fiat", `${invoice.fiatCurrency}, at the rate of now`]);
  const hint = invoice.status === "completed" && invoice.overpaid
    ? "Empty: what was overpaid." : "Empty: all that is credited and not given back yet.";
  const amount = (unit, when) => ({ name: "amount", label: `Amount in ${unit}`, kind: "amount", hint, when });
  return [
    { name: "mode", label: "Give back in", kind: "select", required: true, value: "same", options: modes },
    ...(paid.length > 1
      ? [{ name: "coin", label: "Which coin", kind: "select", required: true, options: paid, when: same }] : []),
    amount(paid.length === 1 ? paid[0][1].split(" ")[0] : "coin units", same),
    ...(invoice.fiatCurrency ? [amount(invoice.fiatCurrency, inFiat)] : []),
    ...(coins.known && invoice.fiatCurrency
      ? [{ name: "coin", label: "Paid out in", kind: "select", options: coins.options, empty: "The coin that was paid most",
        when: inFiat }] : []),
    {
      name: "to", label: "Where to", kind: "select", required: true, value: "link",
      options: [["link", "A link that asks the payer for an address"], ["address", "An address that I know"]],
    },
    { name: "address", label: "Address", kind: "text", mono: true, required: true,
      hint: "Ask the payer for it: the one that paid may be an exchange's.", when: (values) => values.to === "address" },
    { name: "days", label: "Days in which the link can be used", kind: "number", value: "7",
      when: (values) => values.to === "link" },
    {
      name: "sentBy", label: "How you send the link", kind: "text", most: 100, when: (values) => values.to === "link",
      hint: "The invoice's page shows it, and never the link. For example: e-mail to j…@example.com.",
    },
    { name: "reason", label: "Reason", kind: "text", most: 500, hint: "The payer sees it." },
  ];
}
