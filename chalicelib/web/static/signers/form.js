// The form of the signers: who they are, their public keys, how many have to sign, and from which amount on.
import { isAmount } from "../app/format.js";
import { saveFile } from "../app/leaving.js";
import { Button, Notice } from "../app/parts.js";
import { html, useEffect, useId, useRef, useState } from "../app/ui.js";
import { newKeyFile, readPublicKey } from "../signing/new_key.js";
import { hasEd25519 } from "../signing/ed25519.js";
import { plainAmount } from "../signing/texts.js";

const ID = /^[A-Za-z0-9._-]{1,64}$/;
const MOST = 20;
const NEW = { id: "", public_key: "", role: "" };

/** The configuration that a form means: `{ config }`, or `{ problems }` in words. */
export function read({ enabled, needed, threshold, signers }) {
  const problems = [];
  const keys = signers.map(({ public_key: key }) => readPublicKey(key));
  const ids = signers.map(({ id }) => id.trim());
  ids.forEach((id, place) => {
    if (!ID.test(id)) problems.push(`Signer ${place + 1} needs a name of letters, digits, dot, dash or underscore.`);
    const name = id || `signer ${place + 1}`;
    if (!keys[place]) problems.push(`The public key of ${name} is none: 32 bytes in hex or base64, or PEM.`);
  });
  if (new Set(ids).size < ids.length) problems.push("Two signers have the same name.");
  if (new Set(keys).size < keys.length && !keys.includes(null)) problems.push("Two signers have the same key.");
  const many = signers.length;
  if (!/^\d{1,2}$/.test(needed) || Number(needed) > many) problems.push(`Signatures needed: a number up to ${many}.`);
  if (enabled && Number(needed) < 1) problems.push("At least one signature is needed, or signatures are off.");
  if (!isAmount(threshold) || plainAmount(threshold) === null) problems.push("The amount must be one such as 10 or 0.5.");
  if (problems.length > 0) return { problems };
  return {
    config: {
      enabled, required_signatures: Number(needed), total_signers: signers.length, threshold_amount: plainAmount(threshold),
      signers: signers.map(({ role }, place) => ({ id: ids[place], public_key: keys[place], role: role.trim() })),
    },
  };
}

/** `done(config)` gets what was typed, once it can be sent. */
export function SignersForm({ config, done, cancel }) {
  const [typed, type] = useState({
    enabled: config.enabled || config.signers.length === 0, needed: String(config.required_signatures || 1),
    threshold: config.signers.length > 0 ? config.threshold_amount : "",
    signers: config.signers.length > 0 ? config.signers : [{ ...NEW }],
  });
  const [problems, complain] = useState([]);
  const prefix = useId();
  const change = (name, value) => {
    type({ ...typed, [name]: value });
    if (problems.length > 0) complain([]);
  };
  const changeSigner = (place, part) => {
    change("signers", typed.signers.map((one, at) => (at === place ? { ...one, ...part } : one)));
  };
  const send = (event) => {
    event.preventDefault();
    const { config: next, problems: found } = read(typed);
    complain(found ?? []);
    if (next) done(next);
  };
  return html`<form class="form" onSubmit=${send} novalidate autocomplete="off">
    ${problems.length > 0 && html`<${Notice} tone="bad" title="This can not be sent yet">${problems.map((text) => html`<p
      key=${text}>${text}</p>`)}<//>`}
    <div class="field check"><label><input type="checkbox" checked=${typed.enabled} onChange=${(event) =>
      change("enabled", event.currentTarget.checked)} /><span>Large withdrawals need signatures</span></label></div>
    <div class="field"><label for=${`${prefix}-threshold`}>From this amount on</label>
      <input id=${`${prefix}-threshold`} inputmode="decimal" placeholder="10" value=${typed.threshold}
        aria-describedby=${`${prefix}-hint`}
        onInput=${(event) => change("threshold", event.currentTarget.value)} />
      <p class="hint" id=${`${prefix}-hint`}>
        In coin units, whichever the coin. Smaller ones count together over 24 hours.</p></div>
    ${typed.signers.map((one, place) => html`<${Signer} key=${place} place=${place} signer=${one}
      change=${(part) => changeSigner(place, part)}
      remove=${() => change("signers", typed.signers.filter((_, at) => at !== place))} />`)}
    ${typed.signers.length < MOST && html`<div class="actions"><${Button} tone="quiet"
      onClick=${() => change("signers", [...typed.signers, { ...NEW }])}>Add a signer<//></div>`}
    <div class="field"><label for=${`${prefix}-needed`}>Signatures needed</label>
      <input id=${`${prefix}-needed`} inputmode="numeric" value=${typed.needed}
        onInput=${(event) => change("needed", event.currentTarget.value.trim())} /></div>
    <div class="actions"><${Button} type="submit">Go on<//><${Button} tone="quiet" onClick=${cancel}>Not now<//></div>
  </form>`;
}

function Signer({ place, signer, change, remove }) {
  const id = useId();
  return html`<fieldset class="field signer"><legend>Signer ${place + 1}</legend>
    <div class="field"><label for=${`${id}-name`}>Name</label><input id=${`${id}-name`} value=${signer.id} maxlength="64"
      placeholder="alice"
      onInput=${(event) => change({ id: event.currentTarget.value })} /></div>
    <div class="field"><label for=${`${id}-key`}>Public key</label><textarea id=${`${id}-key`} class="mono" rows="2"
      spellcheck=${false} value=${signer.public_key}
      aria-describedby=${`${id}-hint`} onInput=${(event) => change({ public_key: event.currentTarget.value })}></textarea>
      <p class="hint" id=${`${id}-hint`}>
        Ed25519: 32 bytes in hex or base64, or PEM. Who has none makes a key file below. The private key stays with
        the signer.</p></div>
    <div class="field"><label for=${`${id}-role`}>Role <span class="soft">(optional)</span></label><input id=${`${id}-role`}
      value=${signer.role} maxlength="64"
      onInput=${(event) => change({ role: event.currentTarget.value })} /></div>
    <div class="actions"><${MakeKey} name=${signer.id} made=${(key) => change({ public_key: key })} />
      <${Button} tone="quiet" onClick=${remove}>Remove this signer<//></div></fieldset>`;
}

/** Makes a key for a signer: the file is saved, and its public half stands in the form. */
function MakeKey({ name, made }) {
  const [able, know] = useState(false);
  const [said, say] = useState("");
  const alive = useRef(true);
  useEffect(() => {
    hasEd25519().then((found) => alive.current && know(found));
    return () => { alive.current = false; };
  }, []);
  if (!able) return null;
  const make = async () => {
    const { publicKey, file } = await newKeyFile();
    saveFile(file, `${ID.test(name) ? name : "signer"}-key.pem`);
    say("The key file is saved on this computer: sign with it next. Afterwards it belongs to its signer alone.");
    made(publicKey);
  };
  return html`<${Button} tone="quiet" onClick=${make}>Make a key file<//><span class="fine" role="status">${said}</span>`;
}
