// One delivery: what was sent, what was answered at each attempt, and sending it again.
import { at, newKey, post } from "../app/api.js";
import { Button, Card, Code, Copy, Facts, Failure, Loading, Notice, Page, Status, Time } from "../app/parts.js";
import { shorten } from "../app/format.js";
import { Link, go } from "../app/router.js";
import { can } from "../app/session.js";
import { lookSoon, useGet } from "../app/use.js";
import { html, useRef, useState } from "../app/ui.js";
import { pretty } from "./pretty.js";
import { outcome, standing, succeeded } from "./words.js";

/** The page of a delivery. */
export default function Delivery({ params }) {
  const path = at`/webhooks/deliveries/${params.id}`;
  const { data: delivery, error, loading, again } = useGet(path, { request: "true" }, { every: 15 });
  return html`<${Page} title=${delivery ? `Delivery of ${delivery.event}` : "Delivery"}
      actions=${delivery && can("webhooks:write") && html`<${Resend} delivery=${delivery} path=${path} again=${again} />`}>
    ${delivery && html`<p class="fine"><${Link} to=${at`/webhooks/${delivery.webhookId}`}>All deliveries of this
      webhook<//></p>`}
    <${Failure} error=${error} again=${again} />
    ${loading && !delivery && html`<${Loading} />`}
    ${delivery && html`<${State} delivery=${delivery} /><${Request} delivery=${delivery} /><${Attempts} delivery=${delivery}
      />`}
  <//>`;
}

/** Sends it again: one press makes one delivery, however often the answer is lost. */
function Resend({ delivery, path, again }) {
  const [busy, work] = useState(false);
  const [failure, fail] = useState(null);
  const key = useRef(newKey());
  const send = async () => {
    work(true);
    fail(null);
    try {
      const { data: sent } = await post(`${path}/redeliver`, {}, { key: key.current });
      key.current = newKey();
      again();
      lookSoon();
      if (sent.id !== delivery.id) go(at`/deliveries/${sent.id}`);
    } catch (error) {
      fail(error);
    } finally {
      work(false);
    }
  };
  return html`<${Button} busy=${busy} onClick=${send}>${delivery.status === "pending" ? "Send now" : "Send again"}<//>
    ${failure && html`<${Failure} error=${failure} />`}`;
}

const other = (id) => id && html`<${Link} to=${at`/deliveries/${id}`}><code>${shorten(id, 8, 4)}</code><//>`;

function State({ delivery }) {
  const found = standing(delivery);
  return html`${found.why && html`<${Notice} tone=${found.tone} title=${found.label}>${found.why}<//>`}
    <${Card}><${Facts} rows=${[
      ["Status", html`<${Status} tone=${found.tone} label=${found.label} />`],
      ["Event", html`<${Link} to=${at`/events/${delivery.eventId}`}>${delivery.event}<//>`],
      ["Made", html`<${Time} at=${delivery.createdAt} />`],
      ["Ended", delivery.finishedAt && html`<${Time} at=${delivery.finishedAt} />`],
      ["Next attempt", delivery.nextAttemptAt && html`<${Time} at=${delivery.nextAttemptAt} ago />`],
      ["Sent again as", other(delivery.redeliveredAs)],
      ["Sends again", other(delivery.redeliveryOf)],
      ["Id", html`<${Code} value=${delivery.id} what="delivery id" />`],
    ]} /><//>`;
}

function Request({ delivery }) {
  const sent = delivery.request;
  if (!sent) return null;
  return html`<${Card} title="What is sent" actions=${sent.body
    && html`<${Copy} value=${sent.body} label="Copy exact body" />`}>
    <p><strong>POST</strong> ${sent.url ? html`<code>${sent.url}</code>`
      : html`<span class="soft">The webhook was deleted</span>`}</p>
    <${Facts} rows=${Object.entries(sent.headers).map(([name, value]) => [name, html`<code>${value}</code>`])} />
    ${sent.body
      ? html`<pre tabindex="0" aria-label="Body, indented">${pretty(sent.body)}</pre>
        <p class="fine">Indented here. The signature is over the exact bytes, which you can copy; it is made anew for each
          attempt, with the time of that.</p>`
      : html`<p class="soft">${can("events:read") ? "The event is forgotten after 30 days."
      : "The body is an event: this key may not see events (events:read)."}</p>`}
  <//>`;
}

function Attempts({ delivery }) {
  if (delivery.attempts.length === 0) return html`<${Card} title="Attempts"><p class="soft">None yet.</p><//>`;
  const newest = delivery.attempts.map((attempt, place) => ({ ...attempt, number: place + 1 })).reverse();
  return html`<${Card} title="Attempts">${newest.map((attempt) =>
    html`<section key=${attempt.number} aria-label=${`Attempt ${attempt.number}`}>
    <h3>Attempt ${attempt.number} <${Status} tone=${succeeded(attempt) ? "good" : "bad"} label=${outcome(attempt)} /></h3>
    <p class="fine"><${Time} at=${attempt.at} />, ${attempt.durationMs} ms${attempt.nextAttemptAt
      && html`; the next one was due <${Time} at=${attempt.nextAttemptAt} />`}</p>
    ${attempt.responseBody && html`<pre tabindex="0" dir="auto"
      aria-label=${`Answer to attempt ${attempt.number}`}>${attempt.responseBody}</pre>`}
    ${attempt.responseBody === "" && html`<p class="fine">The answer had no body.</p>`}
  </section>`)}<//>`;
}
