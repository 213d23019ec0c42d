// A shop's day, from an order to a refund, with Node.js 20 alone.
//
//     KEY=<client_test> node docs/shop/shop.mjs
//
// API and PORT, where webhooks arrive, come from the environment too. The sandbox plays the customers: a shop leaves `customer` out.
import { createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { once as happening, EventEmitter } from "node:events";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const { API = "http://127.0.0.1:8000/api/v1", KEY, PORT = "9000" } = process.env;
const SECRET = randomBytes(32); // signs the webhooks; a shop keeps it with its other secrets
const EVENTS = ["transaction.confirmed", "invoice.completed", "invoice.reverted", "refund.completed", "payout_link.completed"];
const COIN = { network: "ethereum", coin: "usdt" };
const PAYEE = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

class Refused extends Error {} // the answer to a request that is not done: the same request again is refused again

// One request. Throws Refused; any other error where another try may do.
async function send(method, url, body, headers = {}) {
  const answer = await fetch(url, {
    method,
    headers: { "Content-Type": "application/json", ...headers },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  const text = await answer.text();
  if (answer.status === 429 || answer.status >= 500) {
    throw Object.assign(new Error(text), { seconds: Number(answer.headers.get("retry-after") ?? 1) });
  }
  if (!answer.ok) throw new Refused(text);
  const found = JSON.parse(text);
  return found.data ?? found;
}

// A request of the shop's, sent again when its answer got lost: with its Idempotency-Key it is done once. `once` names what must
// not be done again after a crash either: its answer is kept for 24 hours.
async function call(method, path, body, once = randomUUID()) {
  const headers = { "X-Api-Key": KEY, "Idempotency-Key": once };
  for (const seconds of [1, 5]) {
    try {
      return await send(method, API + path, body, headers);
    } catch (error) {
      if (error instanceof Refused) throw error;
      await sleep((error.seconds ?? seconds) * 1000);
    }
  }
  return send(method, API + path, body, headers);
}

// Keeps each genuine event once, and answers at once. A shop keeps them in its database, under their unique id.
const known = new Set(), kept = [], arrival = new EventEmitter();
const same = (a, b) => a.length === b.length && timingSafeEqual(Buffer.from(a, "latin1"), Buffer.from(b, "latin1"));
const hook = createServer((request, response) => {
  const chunks = [], header = (name) => request.headers[`webhook-${name}`] ?? "";
  request.on("data", (chunk) => chunks.push(chunk)).on("end", () => {
    const body = Buffer.concat(chunks), id = header("id"), at = header("timestamp");
    const mine = "v1," + createHmac("sha256", SECRET).update(`${id}.${at}.`).update(body).digest("base64");
    const genuine = header("signature").split(" ").some((one) => same(mine, one)) && Math.abs(Date.now() / 1000 - at) <= 300;
    if (genuine && !known.has(id)) {
      known.add(id);
      kept.push(JSON.parse(body));
      arrival.emit("event");
    }
    response.writeHead(genuine ? 204 : 401).end();
  });
});

// Orders by number: the invoice of each, what happened to it, and what it gives back.
const orders = new Map();
const shop = {
  // The id of its invoice, whose page the customer is sent to. The same order again is the same invoice.
  async order(number, price, more = {}) {
    const wanted = {
      fiatAmount: price, fiatCurrency: "USD", accept: [COIN], latePayments: "manual", ...more,
      externalId: number, metadata: { order: number },
    };
    const invoice = await call("POST", "/invoices", wanted, `order-${number}`);
    orders.set(number, { invoice: invoice.id, done: new Set() });
    console.log(number, "ordered:", invoice.checkoutUrl);
    return invoice.id;
  },

  // Safe to do twice: what pays has an Idempotency-Key, and nothing is shipped twice.
  async handle({ event, data }) {
    const named = event === "transaction.confirmed" || event === "refund.completed";
    if (named && data.invoiceId === null) return;
    const invoice = named ? await call("GET", `/invoices/${data.invoiceId}`) : data; // a payout link has the metadata, too
    const number = invoice.metadata?.order;
    if (!orders.has(number)) return;
    if (event === "transaction.confirmed") return shop.credited(number, invoice, data);
    shop.note(number, { "invoice.completed": "shipped", "invoice.reverted": "stopped" }[event] ?? "paid back");
  },

  // Money came: what the order did not ask for goes back. What is refused is left to a person.
  async credited(number, invoice, { id, hash, network, coin, amount, flags }) {
    if (flags.includes("held")) return console.log(number, "look at this: a payment is held by the operator");
    const once = `back-${invoice.id}-${invoice.received}`; // what is confirmed together goes back together
    // Without an amount: what was overpaid, else all that is credited and not refunded.
    const refund = async (reason) =>
      shop.give(number, await call("POST", `/invoices/${invoice.id}/refunds`, { mode: "same", reason }, once));
    try {
      // One transaction may bring a right coin and a wrong one.
      if (invoice.misdirected?.some((one) => one.txId === hash && one.network === network && one.coin === coin)) {
        const description = `Order ${number}: not the coin we asked for`;
        const link = { network, coin, amount, description, metadata: invoice.metadata };
        shop.give(number, await call("POST", "/payout-links", link, id));
      } else if (["expired", "cancelled"].includes(invoice.status)) await refund("Paid too late");
      else if (invoice.overpaid) await refund("Paid too much");
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      console.log(number, "look at this:", error.message);
    }
  },

  // Tell the customer: `claimUrl` is in this answer alone.
  give(number, back) {
    orders.get(number).back = back;
    shop.note(number, `gives back ${back.amount} ${back.coin}`);
  },

  note(number, what) {
    const { done } = orders.get(number);
    if (!done.has(what)) console.log(number, what);
    done.add(what);
  },

  async until(number, what) {
    while (!orders.get(number).done.has(what)) {
      if (kept.length === 0) await happening(arrival, "event", { signal: AbortSignal.timeout(60_000) });
      await shop.handle(kept.shift());
    }
  },
};

// Whom the sandbox plays.
const customer = {
  chooses: (invoice) => send("POST", `${API}/pay/${invoice}/choice`, COIN),

  async pays({ network, address }, amount, coin = COIN.coin) {
    await call("POST", "/sandbox/deposits", { network, coin, amount, address });
    await call("POST", "/sandbox/blocks", { network, count: 12 });
  },

  // Names an address, sees it again, and confirms it.
  async claims({ id, invoiceId, claimUrl }) {
    const { confirm } = await send("POST", claimUrl, { address: PAYEE });
    await send("POST", claimUrl, { address: PAYEE, confirm });
    await customer.gets(`${invoiceId ? "/refunds" : "/payout-links"}/${id}`);
  },

  // Has the sandbox mine the payment now.
  async gets(path) {
    const { withdrawalId } = await call("GET", path);
    await call("POST", `/sandbox/withdrawals/${withdrawalId}`, { outcome: "confirm" });
  },
};

async function day(endpoint) {
  const [exact, over, stray, late] = [1, 2, 3, 4].map((n) => `${Date.now()}-${n}`);

  let choice = await customer.chooses(await shop.order(exact, "49.90"));
  await customer.pays(choice, choice.missing);
  await shop.until(exact, "shipped");
  let sent;
  while (!sent) {
    [sent] = await call("GET", `/webhooks/${endpoint}/deliveries?event=invoice.completed&limit=1`);
    if (!sent) await new Promise((done) => setTimeout(done, 50)); // a delivery is listed once its first attempt is over
  }
  await call("POST", `/webhooks/deliveries/${sent.id}/redeliver`); // comes again, and changes nothing

  choice = await customer.chooses(await shop.order(over, "20"));
  await customer.pays(choice, "8"); // in two parts, and too much
  await customer.pays(choice, "17");
  await shop.until(over, "shipped");
  await shop.until(over, "gives back 5 usdt");

  await customer.pays(await customer.chooses(await shop.order(stray, "30")), "30", "usdc");
  await shop.until(stray, "gives back 30 usdc");

  choice = await customer.chooses(await shop.order(late, "10", { expiresIn: 3600 }));
  await call("POST", "/sandbox/clock", { advance: 7200 });
  await customer.pays(choice, "10");
  await shop.until(late, "gives back 10 usdt");

  for (const number of [over, stray, late]) {
    await customer.claims(orders.get(number).back);
    await shop.until(number, "paid back");
  }

  const refunds = `/invoices/${orders.get(exact).invoice}/refunds`;
  try {
    await call("POST", refunds, { mode: "fiat", amount: "60", address: PAYEE }, `too-much-${exact}`);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    console.log(exact, "refused:", JSON.parse(error.message).error);
  }
  const back = await call("POST", refunds, { mode: "fiat", amount: "9.90", address: PAYEE }, `refund-${exact}`);
  shop.give(exact, back);
  await customer.gets(`/refunds/${back.id}`);
  await shop.until(exact, "paid back");
}

await happening(hook.listen(PORT, "127.0.0.1"), "listening");
const secret = `whsec_${SECRET.toString("base64")}`;
const endpoint = await call("POST", "/webhooks", { url: `http://127.0.0.1:${PORT}/hook`, events: EVENTS, secret });
try {
  await day(endpoint.id);
} finally {
  await call("DELETE", `/webhooks/${endpoint.id}`);
  hook.close();
  hook.closeAllConnections();
}
