// A change that a merchant's signers guard: it is sent without signatures first. Where the service asks for them it shows the
// text, which has to be the one that this page makes of the change; then signatures are collected, and it is sent with them.
import { Dialog } from "../app/dialog.js";
import { Button, Failure, Loading, Notice } from "../app/parts.js";
import { html, useState } from "../app/ui.js";
import { SignatureForm, TextToSign } from "./dialog.js";
import { shownText } from "./texts.js";

/**
 * What signatures a change needs: `{ signers, must, present, many }`. `must` are ids of new signers, each of whom signs; of the
 * `present` ones `many` have to.
 */
export function needed(present, after) {
  const known = present.enabled ? present.signers : [];
  const same = (one, other) => one.id === other.id && one.public_key === other.public_key;
  const fresh = after?.enabled ? after.signers.filter((one) => !known.some((other) => same(one, other))) : [];
  return {
    signers: [...known, ...fresh], must: fresh.map((one) => one.id), present: known.map((one) => one.id),
    many: present.enabled ? present.required_signatures : 0,
  };
}

/** Whether `given` ({ signer_id }) are all that a change needs. */
export function enough({ must, present, many }, given) {
  const signed = new Set(given.map((one) => one.signer_id));
  return must.every((id) => signed.has(id)) && present.filter((id) => signed.has(id)).length >= many;
}

/**
 * `send(signatures)` asks the service; `expected(shown)` makes the text of the change by this page, where `shown` is the
 * service's; `wants` is what `needed` says. `close(result)` comes at the end.
 */
export function GuardedChange({ title, children, send, expected, wants, close }) {
  const [asked, ask] = useState({ state: "looking" });
  const start = () => {
    ask({ state: "asking" });
    send([]).then(close, (error) => {
      const text = shownText(error);
      if (!text) ask({ state: "refused", error });
      else ask({ state: text === expected(text) ? "signing" : "differs", text });
    });
  };
  return html`<${Dialog} title=${title} close=${() => close()} wide>
    ${children}
    ${asked.state === "looking" && html`<div class="actions"><${Button} onClick=${start}>Make this change<//>
      <${Button} tone="quiet" onClick=${() => close()}>Not now<//></div>`}
    ${asked.state === "asking" && html`<${Loading}>Asking the service…<//>`}
    ${asked.state === "refused" && html`<${Failure} error=${asked.error} again=${start} />`}
    ${asked.state === "differs" && html`<${Notice} tone="bad" title="Do not sign this">
      The service asks to sign another text than this page makes of your change. Perhaps somebody changed it meanwhile: load
      the page again. If it goes on, tell the operator.<//>`}
    ${asked.state === "signing" && html`<${Collecting} text=${asked.text} wants=${wants} send=${send} close=${close} />`}<//>`;
}

/** The signatures that are there, and the form for the next one. The last one that is needed sends the change. */
function Collecting({ text, wants, send, close }) {
  const [given, give] = useState([]);
  const [failure, fail] = useState(null);
  const [busy, work] = useState(false);
  const complete = enough(wants, given);
  const finish = async (all) => {
    work(true);
    fail(null);
    try {
      close(await send(all));
    } catch (error) {
      fail(error);
      work(false);
    }
  };
  const add = async (signature) => {
    const all = [...given.filter((one) => one.signer_id !== signature.signer_id), signature];
    give(all);
    if (enough(wants, all)) await finish(all);
  };
  const standing = (id) => {
    if (given.some(({ signer_id: signer }) => signer === id)) return "signed";
    return wants.must.includes(id) ? "has to sign" : "may sign";
  };
  const open = wants.signers.filter((one) => !given.some(({ signer_id }) => signer_id === one.id));
  return html`<${Notice} title="Signatures are needed" tone="calm">${inWords(wants)}<//>
    <ul class="plain">${wants.signers.map((one) => html`<li key=${one.id}>${one.id}: ${
      standing(one.id)}</li>`)}</ul>
    <${TextToSign} text=${text} />
    ${failure && html`<${Failure} error=${failure} />`}
    ${complete
      ? html`<div class="actions"><${Button} busy=${busy} onClick=${() => finish(given)}>Make this change<//></div>`
      : html`<${SignatureForm} key=${given.length} text=${text} signers=${open} action="Sign" done=${add}
        cancel=${() => close()} />
        <p class="fine">Signers at other computers sign in to the portal, open Signers, and paste this text there.
          They send you their signature.</p>`}`;
}

function inWords({ must, many }) {
  const parts = [
    many > 0 && `${many} of the present signers`,
    must.length > 0 && `each new signer (${must.join(", ")})`,
  ].filter(Boolean);
  return `Needed: ${parts.join(", and ")}. A key alone can not make this change.`;
}
