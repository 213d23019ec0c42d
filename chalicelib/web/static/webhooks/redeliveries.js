// Sending the events of a time again: orders it, shows how far it is, and stops it.
import { at, del, post } from "../app/api.js";
import { Form } from "../app/form.js";
import { amount, countOf, moment } from "../app/format.js";
import { Button, Card, Facts, Failure, Loading, Status, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html, useState } from "../app/ui.js";
import { REDELIVERY } from "./fields.js";

/** Orders a redelivery, and lists those of the last 30 days. */
export function Redeliveries({ webhook }) {
  const path = at`/webhooks/${webhook.id}`;
  const { data: jobs, error, loading, again } = useGet(`${path}/redeliveries`, { limit: 20 });
  const [fresh, add] = useState([]);
  const submit = async (values, options) => (await post(`${path}/redeliver`, values, options)).data;
  const known = new Set(fresh.map((job) => job.id));
  const all = [...fresh, ...(jobs ?? []).filter((job) => !known.has(job.id))];
  return html`
    ${can("webhooks:write") && html`<${Card} title="Send the events of a time again">
      ${webhook.status === "disabled"
        ? html`<p>Turn the webhook on first.</p>`
        : html`<${Form} fields=${REDELIVERY} action="Send again" submit=${submit} done=${(job) => add([job, ...fresh])}
        say="It has begun: see below how far it is." />`}<//>`}
    <${Failure} error=${error} again=${again} />
    ${loading && !jobs && html`<${Loading} />`}
    ${jobs && all.length === 0 && html`<p class="soft">Nothing was sent again in the last 30 days.</p>`}
    ${all.map((job) => html`<${Job} key=${job.id} first=${job} webhook=${webhook} />`)}`;
}

/** One job; while it runs it is asked for again. */
function Job({ first, webhook }) {
  const path = at`/webhooks/redeliveries/${first.id}`;
  const [stopped, stop] = useState(null);
  const [failure, fail] = useState(null);
  const { data } = useGet(first.status === "running" && !stopped ? path : null, {}, { every: 15 });
  const job = stopped ?? data ?? first;
  const running = job.status === "running";
  const cancel = () => del(path).then((answer) => stop(answer.data), fail);
  return html`<${Card} title=${`Events from ${moment(job.from)} to ${moment(job.to)}`}
      actions=${running && can("webhooks:write") && html`<${Button} tone="quiet" onClick=${cancel}>Stop<//>`}>
    ${running && html`<div class="progress"><progress aria-label="Sending again"></progress></div>`}
    <p role="status">${countOf(job.looked, "event")} looked at: ${amount(job.made)} sent again, ${amount(job.skipped)} needed
      nothing.</p>
    <${Failure} error=${failure} />
    <${Facts} rows=${[
      ["Status", html`<${Status} value=${job.status} />`],
      ["Why it ended", job.reason],
      ["Which", job.which === "all" ? "All events" : "What it was never sent with success"],
      ["Began", html`<${Time} at=${job.createdAt} />`],
      ["Ended", job.finishedAt && html`<${Time} at=${job.finishedAt} />`],
    ]} />
    ${job.made > 0 && html`<p><${Link} to=${at`/webhooks/${webhook.id}`}
      query=${{ tab: "deliveries", redeliveryId: job.id }}>Its deliveries<//></p>`}
  <//>`;
}
