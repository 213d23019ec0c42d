// Prints each event once that a webhook brings, and refuses what the service did not send.
//
//     PORT=9000 WEBHOOK_SECRET=whsec_... node docs/shop/receiver.js
const { createHmac, timingSafeEqual } = require("node:crypto");
const { PORT, WEBHOOK_SECRET: secret } = process.env, handled = new Set();
const key = secret.startsWith("whsec_") ? Buffer.from(secret.slice(6), "base64") : secret;
const same = (a, b) => a.length === b.length && timingSafeEqual(Buffer.from(a, "latin1"), Buffer.from(b, "latin1"));

require("node:http").createServer((request, response) => {
  const chunks = [], header = (name) => request.headers[name] ?? "";
  request.on("data", (chunk) => chunks.push(chunk)).on("end", () => {
    const body = Buffer.concat(chunks), id = header("webhook-id"), at = header("webhook-timestamp");
    const published = "sha256=" + createHmac("sha256", secret).update(body).digest("hex");
    const standard = "v1," + createHmac("sha256", key).update(`${id}.${at}.`).update(body).digest("base64");
    const sent = ["x-gateway-signature", "x-gateway-signature-previous", "webhook-signature"].flatMap((name) => header(name).split(" "));
    const genuine = [published, standard].every((mine) => sent.some((one) => same(mine, one))) && Math.abs(Date.now() / 1000 - at) <= 300;
    if (genuine && !handled.has(id)) console.log(JSON.parse(body).event, id); // what the event asks for
    if (genuine) handled.add(id);
    response.writeHead(genuine ? 204 : 401).end();
  });
}).listen(PORT, "127.0.0.1");
