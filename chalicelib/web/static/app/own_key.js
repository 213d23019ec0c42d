// What the key that is signed in is, and may do.
import { Card, Facts, Page, Status, Time } from "./parts.js";
import { PERMISSIONS } from "./permissions.js";
import { html } from "./ui.js";

/** The page "This key". */
export default function OwnKey({ me }) {
  const may = new Set(me.permissions);
  const list = (held) => PERMISSIONS.filter(([name]) => may.has(name) === held);
  return html`<${Page} title="This key">
    <${Card} title="Key"><${Facts} rows=${[
      ["Name", me.name],
      ["Id", html`<code>${me.key_id}</code>`],
      ["Merchant", me.merchant?.name],
      ["Environment",
        html`<${Status} value=${me.type} tone=${me.type === "test" ? "warn" : "good"}
          label=${me.type === "test" ? "Test: sandbox, no real money" : "Production: real money"} />`],
      ["Level", me.level === "admin" ? "Admin: the operator's" : "Client"],
      ["Requests left at sign-in", html`${me.rate_limits.remaining} until <${Time} at=${me.rate_limits.reset_at} />`],
    ]} /><//>
    <${Card} title="It may"><${Permissions} list=${list(true)} none="Nothing." /><//>
    <${Card} title="It may not"><${Permissions} list=${list(false)} none="There is nothing that it may not." /><//>
  <//>`;
}

function Permissions({ list, none }) {
  if (list.length === 0) return html`<p>${none}</p>`;
  return html`<ul class="plain">
    ${list.map(([name, words]) => html`<li key=${name}>${words} <code class="soft">${name}</code></li>`)}</ul>`;
}
