// One webhook: how it does, its deliveries, sending again, and what can be changed.
import { at, del, post, put } from "../app/api.js";
import { Ask, Dialog, useDialog } from "../app/dialog.js";
import { Form } from "../app/form.js";
import { Button, Card, Code, Facts, Failure, Loading, Notice, Page, Status, Tabs, Time } from "../app/parts.js";
import { Link, go } from "../app/router.js";
import { can } from "../app/session.js";
import { lookSoon, useGet } from "../app/use.js";
import { showSigningSecret } from "../app/shown_once.js";
import { html } from "../app/ui.js";
import { Deliveries } from "./deliveries.js";
import { ROTATION, webhookBody, webhookFields } from "./fields.js";
import { Redeliveries } from "./redeliveries.js";
import { eventWords, health } from "./words.js";

const TABS = [["deliveries", "Deliveries"], ["again", "Send again"], ["events", "What it is told"]];

/** The page of a webhook. */
export default function Webhook({ params, query }) {
  const path = at`/webhooks/${params.id}`;
  const { data: webhook, error, loading, again, put: show } = useGet(path, {}, { every: 30 });
  const tab = TABS.some(([name]) => name === query.tab) ? query.tab : "deliveries";
  return html`<${Page} title=${webhook ? hostOf(webhook.url) : "Webhook"}
      actions=${webhook && can("webhooks:write") && html`<${Actions} webhook=${webhook} path=${path} show=${show} />`}>
    <p class="fine"><${Link} to="/webhooks">All webhooks<//></p>
    <${Failure} error=${error} again=${again} />
    ${loading && !webhook && html`<${Loading} />`}
    ${webhook && html`<${State} webhook=${webhook} />
      <${Tabs} label="About this webhook" tabs=${TABS} chosen=${tab}
        choose=${(name) => go(path, { tab: name }, { replace: true })}>
        ${tab === "deliveries" && html`<${Deliveries} webhook=${webhook} />`}
        ${tab === "again" && html`<${Redeliveries} webhook=${webhook} />`}
        ${tab === "events" && html`<${Told} webhook=${webhook} />`}
      <//>`}
  <//>`;
}

/** The host of a URL, for a heading: the whole URL stands below it. */
function hostOf(url) {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}

function State({ webhook }) {
  const found = health(webhook);
  const rests = webhook.restsUntil && new Date(webhook.restsUntil).getTime() > Date.now();
  return html`${found.why && html`<${Notice} tone=${found.tone} title=${found.label}>${found.why}<//>`}
    <${Card}><${Facts} rows=${[
      ["URL", html`<${Code} value=${webhook.url} head=${48} tail=${16} what="URL" />`],
      ["Health", html`<${Status} tone=${found.tone} label=${found.label} />`],
      ["Failing since", webhook.failingSince && html`<${Time} at=${webhook.failingSince} ago />`],
      ["Rests until", rests && html`<${Time} at=${webhook.restsUntil} ago />`],
      ["Turned off", webhook.disabledAt && html`<${Time} at=${webhook.disabledAt} ago />`],
      ["The old secret signs until", webhook.previousSecretUntil && html`<${Time} at=${webhook.previousSecretUntil} ago />`],
      ["Made", html`<${Time} at=${webhook.createdAt} />`],
      ["Id", html`<${Code} value=${webhook.id} what="webhook id" />`],
    ]} /><//>`;
}

function Told({ webhook }) {
  if (webhook.events.includes("*")) return html`<p>It is told of everything, also of events that come to be known later.</p>`;
  return html`<ul class="plain">${webhook.events.map((name) =>
    html`<li key=${name}>${eventWords(name)} <code>${name}</code></li>`)}</ul>`;
}

function Actions({ webhook, path, show }) {
  const [open, ask, close] = useDialog();
  const on = webhook.status === "active";
  const status = (to) => async () => show((await put(path, { status: to })).data);
  return html`
    ${on && html`<${Button} tone="quiet" onClick=${() => ask("test")}>Send a test<//>`}
    ${on
      ? html`<${Button} tone="quiet" onClick=${() => ask("pause")}>Pause<//>`
      : html`<${Button} onClick=${() => ask("on")}>${webhook.status === "paused" ? "Go on" : "Turn on"}<//>`}
    <${Button} tone="quiet" onClick=${() => ask("change")}>Change<//>
    <${Button} tone="quiet" onClick=${() => ask("rotate")}>New secret<//>
    <${Button} tone="quiet" onClick=${() => ask("delete")}>Delete<//>
    ${open === "test" && html`<${Test} path=${path} close=${close} />`}
    ${open === "pause" && html`<${Ask} title="Pause this webhook?" action="Pause" run=${status("paused")} close=${close}
      words="What it is to be told is kept, and sent in order when it goes on." />`}
    ${open === "on" && html`<${Ask} title="Let this webhook go on?" action="Go on" run=${status("active")} close=${close}
      words=${webhook.status === "paused" ? "What was kept meanwhile is sent now."
        : "Nothing was kept while it was off. Send again what it missed, afterwards."} />`}
    ${open === "change" && html`<${Change} webhook=${webhook} path=${path} show=${show} close=${close} />`}
    ${open === "rotate" && html`<${Rotate} path=${path} close=${close} />`}
    ${open === "delete" && html`<${Ask} title="Delete this webhook?" tone="danger" action="Delete" typed=${hostOf(webhook.url)}
      words="What it had still to be sent is cancelled. Its deliveries can not be listed any more." run=${() => del(path)}
      close=${(done) => { close(); if (done) go("/webhooks"); }} />`}`;
}

/** Sends a test event, and leads to what comes of it. */
function Test({ path, close }) {
  const run = async () => (await post(`${path}/test`)).data;
  return html`<${Ask} title="Send a test event?" action="Send" run=${run}
    words=${html`<p>The event <code>webhook.test</code> is signed and sent as every other.</p>`}
    close=${(sent) => { close(); if (sent) { go(at`/deliveries/${sent.id}`); lookSoon(); } }} />`;
}

function Change({ webhook, path, show, close }) {
  const submit = async (values) => (await put(path, webhookBody(values))).data;
  const done = (changed) => { show(changed); close(); };
  return html`<${Dialog} title="Change this webhook" close=${close}>
    <${Form} fields=${webhookFields(webhook)} action="Save" submit=${submit} done=${done} cancel=${close} />
  <//>`;
}

function Rotate({ path, close }) {
  const done = (made) => {
    showSigningSecret("Your webhook's new secret", made.secret);
    close();
  };
  const submit = async ({ overlap }, options) => (await post(`${path}/rotate-secret`, { overlap: Number(overlap) },
    options)).data;
  return html`<${Dialog} title="Give it a new secret" close=${close}>
    <${Form} fields=${ROTATION} action="Make the secret" submit=${submit} done=${done} cancel=${close} />
  <//>`;
}
