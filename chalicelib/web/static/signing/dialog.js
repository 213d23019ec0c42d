// One signature of a signer: by a key file that is opened for it, or made elsewhere and pasted.
import { Dialog } from "../app/dialog.js";
import { Button, Copy, Failure, Notice, Tabs } from "../app/parts.js";
import { html, useEffect, useId, useRef, useState } from "../app/ui.js";
import { hasEd25519, readSignature, signOnce } from "./ed25519.js";
import { FORMATS, KeyFileError } from "./key_files.js";

const ACCEPTED = ".pem,.der,.key,.p8,.jwk,.json,.hex,.txt";

/** The text that is signed, as it is. */
export function TextToSign({ text }) {
  return html`<div class="text"><div class="top"><h3>The text to sign</h3><${Copy} value=${text}
    what="the text to sign" /></div>
    <pre dir="ltr" tabindex="0" aria-label="The text to sign">${text}</pre></div>`;
}

/**
 * Asks for one signature over `text` by one of `signers` ({ id, public_key }). `action` is the button's text. `done(signature)`
 * gets { signer_id, signature }, which is proven where the browser can, and may throw what the service says.
 */
export function SignatureForm({ text, signers, action, tone = "main", done, cancel }) {
  const [able, know] = useState(null);
  const [way, choose] = useState("file");
  const [failure, fail] = useState(null);
  const [busy, work] = useState(false);
  const alive = useRef(true);
  useEffect(() => {
    hasEd25519().then((found) => alive.current && know(found));
    return () => { alive.current = false; };
  }, []);
  const run = async (make) => {
    if (busy) return;
    work(true);
    fail(null);
    try {
      await done(await make());
    } catch (error) {
      if (alive.current) fail(error);
    } finally {
      if (alive.current) work(false);
    }
  };
  const common = { text, signers, action, tone, busy, run, cancel };
  const ways = [["file", "Key file"], ["pasted", "Made elsewhere"]];
  return html`${failure && html`<${Refusal} error=${failure} />`}
    ${able === false && html`<${Notice} tone="warn" title="This browser can not sign">
      It has no Ed25519, or the page was not loaded over https. Sign the text elsewhere and paste the signature.<//>`}
    ${able === false && html`<${Pasted} ...${common} choosing />`}
    ${able === true && html`<${Tabs} label="How to sign" tabs=${ways} chosen=${way} choose=${choose}>
      ${way === "file" ? html`<${KeyFile} ...${common} />` : html`<${Pasted} ...${common} />`}<//>`}`;
}

/** What went wrong: our own words as they are, the service's with what to do. */
function Refusal({ error }) {
  if (error.status !== undefined) return html`<${Failure} error=${error} />`;
  return html`<${Notice} tone="bad" title="Not signed">${error.message}<//>`;
}

function Actions({ action, tone, busy, cancel }) {
  return html`<div class="actions"><${Button} type="submit" tone=${tone} busy=${busy}>${action}<//>
    ${cancel && html`<${Button} tone="quiet" onClick=${cancel}>Not now<//>`}</div>`;
}

function KeyFile({ text, signers, run, ...rest }) {
  const input = useRef(null);
  const id = useId();
  const sign = (event) => {
    event.preventDefault();
    run(async () => {
      const file = input.current.files[0];
      if (!file) throw new KeyFileError("Choose the key file first.");
      try {
        return await signOnce(file, text, signers);
      } finally {
        if (input.current) input.current.value = ""; // one file, one signature
      }
    });
  };
  return html`<form class="form" onSubmit=${sign} autocomplete="off">
    <div class="field"><label for=${id}>Your key file</label>
      <input type="file" id=${id} ref=${input} accept=${ACCEPTED} aria-describedby=${`${id}-hint`} />
      <p class="hint" id=${`${id}-hint`}>
        ${FORMATS}. It is read in this tab for this one signature, kept nowhere and sent nowhere.</p></div>
    <${Actions} ...${rest} /></form>`;
}

function Pasted({ text, signers, run, choosing, ...rest }) {
  const [words, type] = useState("");
  const [chosen, choose] = useState("");
  const id = useId();
  const sign = (event) => {
    event.preventDefault();
    run(() => readSignature(words, text, signers, chosen));
  };
  return html`<form class="form" onSubmit=${sign} autocomplete="off">
    ${choosing && html`<div class="field"><label for=${`${id}-who`}>Signer</label>
      <select id=${`${id}-who`} value=${chosen} onChange=${(event) => choose(event.currentTarget.value)}><option
        value="">Choose…</option>
        ${signers.map((signer) => html`<option value=${signer.id}>${signer.id}</option>`)}</select></div>`}
    <div class="field"><label for=${id}>Signature</label>
      <textarea id=${id} class="mono" rows="3" value=${words} spellcheck=${false} aria-describedby=${`${id}-hint`}
        onInput=${(event) => type(event.currentTarget.value)}></textarea>
      <p class="hint" id=${`${id}-hint`}>
        Ed25519 over exactly the text above, without a line break at its end: 64 bytes in hex or base64.</p></div>
    <${Actions} ...${rest} /></form>`;
}

/** The same in a dialog, below what is signed about (`children`). */
export function SignDialog({ title, text, children, close, ...rest }) {
  return html`<${Dialog} title=${title} close=${() => close()} wide>
    ${children}<${TextToSign} text=${text} />
    <${SignatureForm} text=${text} cancel=${() => close()} ...${rest} /><//>`;
}
