// A file of payouts: reads its rows, and says of each what is wrong, before anything is sent. Knows no page and no network.
import { parseCsv } from "../app/csv.js";
import { compare, difference, isAmount, sum } from "../app/format.js";

const MOST_ROWS = 5_000;
const NAMES = {
  address: ["address", "to_address", "to address", "recipient", "wallet", "destination"],
  amount: ["amount", "value", "sum"],
  coin: ["coin", "currency", "symbol", "asset", "token"],
  network: ["network", "chain", "blockchain"],
};
const MOST_DIGITS = 38;

/**
 * The rows of a CSV text: `{ rows: [{ row, address, amount, coin, network }], ignored }`. `usual` has the network and the coin
 * of rows that name none; `ignored` are columns that nothing reads. Raises SyntaxError with words for a person.
 */
export function readPayouts(text, usual) {
  const lines = parseCsv(text);
  if (lines.length === 0) throw new SyntaxError("There is nothing in it.");
  const { columns, ignored, heads } = columnsOf(lines[0]);
  const body = lines.slice(heads);
  if (body.length === 0) throw new SyntaxError("There are headings and no rows.");
  if (body.length > MOST_ROWS) throw new SyntaxError(`There are ${body.length} rows: at most ${MOST_ROWS} are read at once.`);
  const cell = (line, name) => (columns[name] === undefined ? "" : String(line[columns[name]] ?? "").trim());
  const rows = body.map((line, place) => ({
    row: place + 1 + heads,
    address: cell(line, "address"),
    amount: cell(line, "amount"),
    coin: (cell(line, "coin") || usual.coin || "").toLowerCase(),
    network: (cell(line, "network") || usual.network || "").toLowerCase(),
  }));
  return { rows, ignored };
}

/** Which column is which: by the headings, or by place where the first line is a row already. */
function columnsOf(first) {
  const heads = first.map((text) => text.trim().toLowerCase());
  const columns = {};
  for (const [name, known] of Object.entries(NAMES)) {
    const found = heads.flatMap((head, place) => (known.includes(head) ? [place] : []));
    if (found.length > 1) throw new SyntaxError(`Two columns are called ${name}.`);
    if (found.length === 1) columns[name] = found[0];
  }
  const named = Object.keys(columns);
  if (named.length === 0) {
    if (first.length < 2) throw new SyntaxError("Each row needs an address and an amount, with a comma between them.");
    if (/[a-z]/i.test(first[1])) throw new SyntaxError("The first line must be: address,amount (and coin,network).");
    return { columns: { address: 0, amount: 1, coin: 2, network: 3 }, ignored: [], heads: 0 };
  }
  const missing = ["address", "amount"].filter((name) => columns[name] === undefined);
  if (missing.length > 0) throw new SyntaxError(`There is no column called ${missing.join(" and none called ")}.`);
  const used = new Set(Object.values(columns));
  return { columns, ignored: first.filter((text, place) => !used.has(place) && text.trim() !== ""), heads: 1 };
}

const keyOf = (...parts) => parts.join("\u001f");

/** Coins by network and slug, as GET /coins lists them. */
export const coinTable = (coins) => new Map(coins.map((coin) => [keyOf(coin.network.network, coin.coin), coin]));

/** The coin of a row, or undefined. */
const coinOf = (table, row) => table.get(keyOf(row.network, row.coin));

/** What is wrong with a row's network, coin and amount, in words; an empty list where nothing is. */
export function wrongWith(row, table) {
  const problems = [];
  const coin = coinOf(table, row);
  if (!row.network) problems.push("names no network");
  if (!row.coin) problems.push("names no coin");
  if (row.network && row.coin && !coin) problems.push(`${row.coin} is not on ${row.network}`);
  if (coin && coin.status !== "ACTIVE") problems.push(`${row.coin} on ${row.network} is not paid out at present`);
  if (!row.address) problems.push("has no address");
  return [...problems, ...wrongAmount(row.amount, coin)];
}

/** What is wrong with an amount of a coin; limits that are set in dollars are the service's to compare. */
export function wrongAmount(text, coin) {
  if (text === "") return ["has no amount"];
  if (!isAmount(text) || /^0\d/.test(text)) return [`${text} is no amount: write 1250.5, with a point and no separators`];
  if (compare(text, "0") === 0) return ["the amount must be more than zero"];
  if (!coin) return [];
  const [whole, part = ""] = text.split(".");
  if (part.length > coin.decimals) return [`${coin.symbol} has at most ${coin.decimals} decimals`];
  const digits = (whole + part.padEnd(coin.decimals, "0")).replace(/^0+/, "");
  return digits.length > MOST_DIGITS ? ["the amount has too many digits"] : outside(text, coin);
}

function outside(text, coin) {
  const { useUsdLimits, minValue, maxValue } = coin.settings ?? {};
  const [least, most] = useUsdLimits ? [null, null] : [limit(minValue), limit(maxValue)];
  if (least && compare(text, least) < 0) return [`the least of one withdrawal is ${least} ${coin.symbol}`];
  if (most && compare(text, most) > 0) return [`the most of one withdrawal is ${most} ${coin.symbol}`];
  return [];
}

/** A limit of a coin's settings as plain decimal text; null for none, and for what is no plain number. */
export function limit(value) {
  const text = String(value ?? "");
  return isAmount(text) && compare(text, "0") > 0 ? text : null;
}

/**
 * Every row with `problems` and `warnings`, what each coin comes to, and what of that is missing. `facts`: `coins` (a table),
 * `addresses` (results of /addresses/validate by network and text), `balances` (null: not known), `trusted` (network and
 * address of the whitelist, null where it is not enforced), `recent` (withdrawals of the last day).
 */
export function checked(rows, facts) {
  const seen = new Map();
  const paid = new Map((facts.recent ?? []).map((one) => [payment(one.network, one.coin, one.to_address, one.amount), one]));
  const shown = rows.map((row) => {
    const found = facts.addresses.get(keyOf(row.network, row.address));
    const normalized = found?.normalized ?? row.address;
    const problems = [...wrongWith(row, facts.coins), ...wrongAddress(row, found, facts.trusted)];
    const place = keyOf(row.network, row.coin, normalized);
    const twin = problems.length === 0 && seen.get(place);
    if (problems.length === 0 && !twin) seen.set(place, row.row);
    const before = isAmount(row.amount) ? paid.get(payment(row.network, row.coin, normalized, row.amount)) : null;
    return { ...row, normalized, problems, warnings: twin ? [`the same address as row ${twin}`] : [], before: before ?? null };
  });
  return { rows: shown, totals: totals(shown, facts) };
}

function wrongAddress(row, found, trusted) {
  if (!row.address || !found) return [];
  if (!found.valid) return [`no address of ${row.network}: ${found.reason}`];
  return trusted && !trusted.has(keyOf(row.network, found.normalized)) ? ["the address is not on the whitelist"] : [];
}

const payment = (network, coin, address, amount) => keyOf(network, coin, address, sum(amount));

/** What the rows without problems come to by coin: `{ network, coin, symbol, count, total, available, left, problem }`. */
function totals(rows, facts) {
  const groups = new Map();
  for (const row of rows.filter((one) => one.problems.length === 0)) {
    const place = keyOf(row.network, row.coin);
    groups.set(place, [...(groups.get(place) ?? []), row]);
  }
  return [...groups.values()].map((group) => {
    const [{ network, coin }] = group;
    const known = coinOf(facts.coins, group[0]);
    const total = sum(...group.map((row) => row.amount));
    const balance = facts.balances?.find((one) => one.network === network && one.coin === coin);
    const available = facts.balances ? balance?.available ?? "0" : null;
    return { network, coin, symbol: known.symbol, count: group.length, total, ...standing(total, available, known) };
  });
}

function standing(total, available, coin) {
  if (available === null) return { available: null, left: null, problem: null };
  const left = compare(available, total) >= 0 ? difference(available, total) : null;
  const day = coin.settings?.useUsdLimits ? null : limit(coin.settings?.maxValueDaily);
  if (left === null) return { available, left, problem: `${difference(total, available)} ${coin.symbol} are missing` };
  if (day && compare(total, day) > 0) return { available, left, problem: `at most ${day} ${coin.symbol} go out in 24 hours` };
  return { available, left, problem: null };
}

/** The different addresses of the rows by network, in lists of at most `size`: `[{ network, addresses }]`. */
export function toValidate(rows, known, size = 100) {
  const waiting = new Map();
  for (const { network, address } of rows) {
    if (!network || !address || known.has(keyOf(network, address))) continue;
    waiting.set(network, (waiting.get(network) ?? new Set()).add(address));
  }
  return [...waiting].flatMap(([network, found]) => {
    const all = [...found];
    return Array.from({ length: Math.ceil(all.length / size) }, (_, place) => ({
      network, addresses: all.slice(place * size, (place + 1) * size),
    }));
  });
}

/** Results of /addresses/validate, added to what is known. */
export function withResults(known, results) {
  const after = new Map(known);
  for (const one of results) after.set(keyOf(one.network, one.address), one);
  return after;
}

/** What `checked` takes as `trusted`, of entries of the whitelist. */
export const trustedOf = (entries) => new Set(entries.map((entry) => keyOf(entry.network, entry.address)));
