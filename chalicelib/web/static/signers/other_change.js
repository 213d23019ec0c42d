// A change of guarded settings in words, and a signer's signature under one that another person makes.
import { amount } from "../app/format.js";
import { Card, Copy, Facts, Notice } from "../app/parts.js";
import { me } from "../app/session.js";
import { html, useId, useState } from "../app/ui.js";
import { SignatureForm } from "../signing/dialog.js";
import { guardedSettings, readChange, settingsText, tenantOf, whitelistText } from "../signing/texts.js";

const signersOf = ({ multisig_config: config }) => (config.enabled ? config.signers : []);

/** What is different after a change of the settings. */
export function Differences({ before, after }) {
  const [was, is] = [guardedSettings(before), guardedSettings(after)];
  const [had, has] = [signersOf(before), signersOf(after)];
  const known = (list, one) => list.some((other) => other.id === one.id && other.public_key === one.public_key);
  const gone = had.filter((one) => !known(has, one));
  const fresh = has.filter((one) => !known(had, one));
  const differ = (name, words) => [name, words(was) === words(is) ? null : `${words(was)} → ${words(is)}`];
  return html`<${Facts} rows=${[
    differ("Withdrawals", (one) => (one.whitelist_enforced ? "whitelist alone" : "any address")),
    differ("Refunds and claim links a day", (one) => `$${amount(one.refundDailyLimitUSD ?? "0")}`),
    differ("Signatures on large withdrawals", (one) => (one.multisig_config.enabled ? "on" : "off")),
    differ("Signatures needed", (one) => `${one.multisig_config.required_signatures} of ${one.multisig_config.total_signers}`),
    differ("From this amount on", (one) => amount(one.multisig_config.threshold_amount)),
    ["New signers", fresh.map((one) => html`<p
      key=${one.public_key}>${one.id}${one.role && ` (${one.role})`}<br /><code>${one.public_key}</code></p>`)],
    ["Signers that go", gone.map(({ id }) => id).join(", ")],
  ].map(([label, node]) => [label, Array.isArray(node) && node.length === 0 ? null : node])} />`;
}

/** What a pasted text is about: `{ change, after, entry }`, or `{ problem }` in words. */
export function understood(text, settings, tenant) {
  const change = readChange(text.trim());
  if (!change) return { problem: "This is no text of a change: it has four lines, and begins with settings or whitelist." };
  if (tenant === null) return { problem: "This key may not see which merchant it belongs to (merchant:read)." };
  if (change.tenant !== tenant) return { problem: `It is about another merchant, or the other environment: ${change.tenant}.` };
  if (change.what === "whitelist") return whitelistChange(text.trim(), change);
  if (change.revision !== settings.revision) {
    const [asked, now] = [change.revision, settings.revision];
    return { problem: `It is about revision ${asked} of the settings, and they are at ${now}: ask for a new text.` };
  }
  return settingsChange(text.trim(), change, settings);
}

function whitelistChange(text, { tenant, revision, record }) {
  // Made again of what is shown: nothing is signed that stands nowhere on the page.
  if (whitelistText(tenant, revision, record) !== text) {
    return { problem: "It has more in it than an address with its limits. Do not sign it." };
  }
  return { entry: record, text };
}

function settingsChange(text, { tenant, revision, record }, settings) {
  const after = { ...settings, ...record, refundDailyLimitUSD: record.refundDailyLimitUSD ?? "0" };
  try {
    if (settingsText(tenant, revision, after) === text) return { after, text };
  } catch {
    // Parts are missing: said below.
  }
  return { problem: "It has something else in it than the settings that are known here. Do not sign it." };
}

/** Lets a signer sign a text that somebody sent, once this page has made the same of what it shows. */
export function OtherChange({ settings }) {
  const [typed, type] = useState("");
  const [signature, sign] = useState(null);
  const id = useId();
  const found = typed.trim() ? understood(typed, settings, me().merchant ? tenantOf(me().merchant) : null) : null;
  const signers = [...signersOf(settings), ...(found?.after ? signersOf(found.after) : [])];
  return html`<${Card} title="Sign a change that somebody sent you">
    <div class="form"><div class="field"><label for=${id}>The text</label>
      <textarea id=${id} class="mono" rows="4" value=${typed} spellcheck=${false} aria-describedby=${`${id}-hint`}
        onInput=${(event) => { type(event.currentTarget.value); sign(null); }}></textarea>
      <p class="hint" id=${`${id}-hint`}>
        As the portal showed it to the person who makes the change. You see what it does before you sign.</p></div></div>
    ${found?.problem && html`<${Notice} tone="bad" title="This can not be signed here">${found.problem}<//>`}
    ${found?.after && html`<h3>It would change</h3><${Differences} before=${settings} after=${found.after} />`}
    ${found?.entry && html`<h3>It would trust</h3><${Facts} rows=${[
      ["Address", html`<code class="whole-address">${found.entry.address}</code>`], ["Network", found.entry.network],
      ["Most in 24 hours", found.entry.daily_limit ?? "no limit"],
      ["Most in 30 days", found.entry.monthly_limit ?? "no limit"]]} />`}
    ${found?.text && !signature && html`<${SignatureForm} key=${found.text} text=${found.text} signers=${signers} action="Sign"
      done=${async (made) => sign(made)} />`}
    ${signature && html`<${Notice} tone="good" title=${`Signed as ${signature.signer_id}`}>
      <p>Send this to the person who makes the change. It is of no use for anything else.</p>
      <pre dir="ltr" tabindex="0" aria-label="The signature">${signature.signature}</pre><${Copy} value=${signature.signature}
        what="the signature" /><//>`}<//>`;
}
