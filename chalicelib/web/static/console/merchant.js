// One merchant: suspended and resumed, and its first API key.
import { at, post, put } from "../app/api.js";
import { Ask, Dialog, useDialog } from "../app/dialog.js";
import { Form } from "../app/form.js";
import { Button, Card, Code, Facts, Failure, Loading, Notice, Page, Status, Time } from "../app/parts.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html, useState } from "../app/ui.js";
import { show } from "../keys/shown.js";
import { Command } from "./shared.js";
import { realmOf } from "./words.js";

const NAMES = { production: "Production", test: "Sandbox" };

/** The page of one merchant. */
export default function Merchant({ params, me }) {
  const { data, error, loading, again, put: keep } = useGet(at`/merchants/${params.id}`);
  return html`<${Page} title=${data?.name ?? "Merchant"}>
    <${Failure} error=${error} again=${again} />
    ${loading && !data && html`<${Loading} />`}
    ${data && html`<${One} merchant=${data} me=${me} put=${keep} again=${again} />`}
  <//>`;
}

function One({ merchant, me, put: keep, again }) {
  const [asked, ask, close] = useDialog();
  const own = merchant.environments.find((each) => each.type === me.type);
  const suspended = merchant.environments.some((each) => ["suspended", "suspending"].includes(each.status));
  const unfinished = merchant.environments.find((each) => ["suspending", "resuming"].includes(each.status));
  const ended = (result) => {
    close();
    if (result) keep(result);
  };
  const keyMade = (key) => {
    close();
    show({ ...key, name: `the first key of ${merchant.name}` }, me.key_id);
    again();
  };
  return html`
    ${unfinished && html`<${Notice}
      tone="warn" title=${`${NAMES[unfinished.type]}: it was cut short`}>
        <p>Some of its keys do not say so yet. Do the same again: it goes on where it stopped.</p><//>`}
    ${own && !own.has_keys && html`<${Notice} tone="calm" title="It has no API key yet" actions=${can("keys:write")
      && html`<${Button} onClick=${() => ask("key")}>Make its first key<//>`}>
      <p>Make its first ${me.type === "test" ? "sandbox" : "production"} key, and hand it over. The merchant makes all
        others with it.</p><//>`}
    ${suspended && html`<${Notice} tone="warn" title="Suspended" actions=${can("merchant:write") && html`<${Button}
      onClick=${() => ask("resume")}>Resume<//>`}>
      <p>Its API keys are refused and its withdrawals wait. Money that arrives is credited.</p>
      ${merchant.environments.filter((each) => each.reason).map((each) =>
        html`<p key=${each.type} dir="auto">${NAMES[each.type]}: ${each.reason}</p>`)}<//>`}
    <${Card} title="Merchant" actions=${!suspended && can("merchant:write") && html`<${Button} tone="quiet"
      onClick=${() => ask("suspend")}>Suspend<//>`}>
      <${Facts} rows=${[["Id", html`<${Code} value=${merchant.id} />`],
        ["Made", html`<${Time} at=${merchant.created_at} />`]]} /><//>
    ${merchant.environments.map((each) => html`<${Card} key=${each.type} title=${NAMES[each.type]}><${Facts} rows=${[
      ["Status", html`<${Status} value=${each.status} />`],
      ["Since", each.since && html`<${Time} at=${each.since} ago=${true} />`],
      ["Why", each.reason],
      ["By the key", each.changed_by && html`<${Code} value=${each.changed_by} />`],
      ["API keys", each.has_keys ? "It has, or had, some: its own keys make others" : "none yet"],
    ]} /><//>`)}
    <${Card} title="By the command line">
      <p class="fine">For a merchant that has lost all of its keys, its signers' keys, or needs another fee budget:</p>
      <${Command}>python -m infra.cli --stage STAGE key ${merchant.id} --realm ${realmOf(me)}<//>
      <${Command}>python -m infra.cli --stage STAGE multisig-reset ${merchant.id} --realm ${realmOf(me)}<//>
      <${Command}>python -m infra.cli --stage STAGE fee-budget ${merchant.id} --realm ${realmOf(me)} --usd USD<//><//>
    ${asked === "key" && html`<${FirstKey} merchant=${merchant} me=${me} done=${keyMade} close=${close} />`}
    ${asked === "suspend" && html`<${Suspend} merchant=${merchant} me=${me} close=${ended} />`}
    ${asked === "resume" && html`<${Ask} title=${`Resume ${merchant.name}?`} action="Resume" typed=${merchant.name}
      close=${ended}
      words="Its API keys are let in again, and its withdrawals go on within a few minutes."
        run=${async () => (await put(at`/merchants/${merchant.id}`, { suspended: false })).data} />`}`;
}

function Suspend({ merchant, me, close }) {
  const [reason, write] = useState("");
  const body = () => (reason.trim() ? { suspended: true, reason: reason.trim() } : { suspended: true });
  return html`<${Ask} title=${`Suspend ${merchant.name}?`} action="Suspend" tone="danger" typed=${merchant.name} close=${close}
    run=${async () => (await put(at`/merchants/${merchant.id}`, body())).data}
    words=${html`<p>Its API keys are refused at once${me.type === "test"
      ? ", in the sandbox" : ", in production and in the sandbox"}, and its withdrawals wait.</p>
      <p>Money that arrives is credited, and payments that were begun go on to their end. You can resume it any time.</p>`}>
    <div class="field"><label for="why">Reason <span class="soft">(for other operators)</span></label>
      <input id="why" type="text" maxlength="200" value=${reason} autocomplete="off"
        onInput=${(event) => write(event.currentTarget.value)} /></div><//>`;
}

function FirstKey({ merchant, me, done, close }) {
  const fields = [{ name: "name", label: "Name of the key", kind: "text", value: "First key", most: 100,
    hint: "The merchant can change it." }];
  const submit = async (values, { key }) => (await post(at`/merchants/${merchant.id}/keys`, values, { key })).data;
  return html`<${Dialog} title="Make its first key" close=${close}>
    <p class="soft">A ${me.type === "test" ? "sandbox" : "production"} key that may do all that a merchant can.
      It is shown once.</p>
    <${Form} fields=${fields} action="Make the key" submit=${submit} done=${done} cancel=${close} /><//>`;
}
