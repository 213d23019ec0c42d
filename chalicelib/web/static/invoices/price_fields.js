// The price of an invoice or a payment link in a form: in fiat or in a coin, and which coins its payer may choose.
import { coinKey, coinOf } from "../catalogue/coin_names.js";
import { fiatOptions } from "../catalogue/fiats.js";

const inFiat = (values) => values.priceIn === "fiat";
const inCoin = (values) => values.priceIn === "coin";
const oneCoin = (values) => inCoin(values) || values.coins === "one";

/**
 * The fields. `coins` as useCoins gives them; `before` is a record whose price they begin with; `ranged`: the payer may name an
 * amount between two.
 */
export function priceFields(coins, { before = {}, ranged = false } = {}) {
  const named = before.currency ? coinKey(before.currency, before.network) : null;
  const range = (value) => (value && typeof value === "object" ? value : null);
  const open = ranged && (range(before.amount) || range(before.fiatAmount));
  const fixed = (values) => !ranged || values.who !== "payer";
  const asked = ranged
    ? [{
      name: "who", label: "Who names the amount", kind: "select", required: true, value: open ? "payer" : "fixed",
      options: [["fixed", "I do"], ["payer", "The payer, between two amounts"]],
    }]
    : [];
  return [
    {
      name: "priceIn", label: "Price in", kind: "select", required: true,
      value: before.amount && !before.fiatAmount ? "coin" : "fiat",
      options: [["fiat", "A currency, such as EUR or USD"], ["coin", "A coin"]],
    },
    ...asked,
    ...amounts("fiatAmount", inFiat, fixed, before.fiatAmount, "49.90"),
    {
      name: "fiatCurrency", label: "Currency", kind: "select", required: true, value: before.fiatCurrency ?? "USD",
      options: fiatOptions,
      when: inFiat,
    },
    {
      name: "coins", label: "The payer pays in", kind: "select", required: true, when: inFiat,
      value: before.accept ? "some" : named ? "one" : "any",
      options: [["any", "Any coin that your settings allow"], ["some", "One of the coins that I choose here"],
        ["one", "One certain coin"]],
    },
    ...someCoins(coins, before, named),
    ...amounts("amount", inCoin, fixed, before.fiatAmount ? null : before.amount, "0.05"),
  ];
}

/** One amount, or the least and the most. */
function amounts(name, when, fixed, before, example) {
  const ends = before && typeof before === "object" ? before : {};
  const one = typeof before === "string" ? before : null;
  const label = name === "amount" ? "Amount in coin units" : "Amount";
  return [
    { name, label, kind: "amount", required: true, value: one, example, when: (values) => when(values) && fixed(values) },
    { name: `${name}.min`, label: `${label}: at least`, kind: "amount", required: true, value: ends.min,
      when: (values) => when(values) && !fixed(values) },
    { name: `${name}.max`, label: `${label}: at most`, kind: "amount", required: true, value: ends.max,
      when: (values) => when(values) && !fixed(values) },
  ];
}

function someCoins(coins, before, named) {
  const some = (values) => inFiat(values) && values.coins === "some";
  if (!coins.known) {
    const hint = "This key may not see the list of coins: name them as usdt@tron.";
    return [
      { name: "accept", label: "Coins", kind: "list", required: true, hint: `${hint} One in each line.`, when: some,
        value: accepted(before) },
      { name: "currency", label: "Coin", kind: "text", required: true, example: "usdt@tron", hint,
        when: oneCoin, value: named },
    ];
  }
  return [
    { name: "accept", label: "Coins to choose from", kind: "checks", required: true, options: coins.options, when: some,
      value: accepted(before, coins) },
    { name: "currency", label: "Coin", kind: "select", required: true, options: coins.options, when: oneCoin, value: named },
  ];
}

/** The accepted coins of a record. One without a network stands for all networks that have it. */
function accepted(before, coins) {
  return (before.accept ?? []).flatMap(({ coin, network }) => {
    if (network || !coins) return [network ? coinKey(coin, network) : coin];
    return coins.coins.filter((each) => each.coin === coin).map((each) => coinKey(coin, each.network));
  });
}

const FORM_ONLY = ["priceIn", "who", "coins", "accept", "currency", "amount", "fiatAmount", "fiatCurrency"];
const isPart = (name) => FORM_ONLY.includes(name) || /\.(min|max)$/.test(name);

/** What the API takes for these fields: the price, and `rest` of the form as it is. */
export function priced(values) {
  const body = Object.fromEntries(Object.entries(values).filter(([name]) => !isPart(name)));
  const amount = (name) => values[name] ?? { min: values[`${name}.min`], max: values[`${name}.max`] };
  if (values.priceIn === "coin") body.amount = amount("amount");
  else Object.assign(body, { fiatAmount: amount("fiatAmount"), fiatCurrency: values.fiatCurrency });
  if (values.accept) body.accept = values.accept.map(named);
  if (values.currency) {
    const { coin, network } = named(values.currency);
    body.currency = coin;
    if (network) body.network = network;
  }
  return body;
}

function named(key) {
  const { coin, network } = coinOf(key);
  return network ? { coin, network } : { coin };
}
