// Who has to sign: the signers of large withdrawals, what they guard, and signing a change that another person makes.
import { put } from "../app/api.js";
import { Dialog, useDialog } from "../app/dialog.js";
import { Form } from "../app/form.js";
import { amount } from "../app/format.js";
import { Button, Card, Code, Empty, Facts, Failure, Loading, Page, Status, Time } from "../app/parts.js";
import { can, me } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { GuardedChange, needed } from "../signing/guarded.js";
import { plainAmount, settingsText, tenantOf } from "../signing/texts.js";
import { Differences, OtherChange } from "./other_change.js";
import { SignersForm } from "./form.js";

const elsewhere = (limit) => (limit === "0" ? "none" : `up to $${amount(limit)} in 24 hours`) + " to other addresses";

/** The page "Signers". */
export default function Signers() {
  const { data: settings, error, loading, again, put: show } = useGet("/merchant/settings");
  const [asked, ask, close] = useDialog();
  if (!settings) return html`<${Page} title="Signers">${loading && html`<${Loading} />`}<${Failure} error=${error}
    again=${again} /><//>`;
  const config = settings.multisig_config;
  const writing = can("merchant:write");
  const done = (after) => { close(); if (after) show(after); };
  return html`<${Page} title="Signers"
    lead="People whose signature large withdrawals need, so that a stolen API key is not enough.">
    <${Failure} error=${error} again=${again} />
    <${Card} title="Signatures on large withdrawals" actions=${writing && can("withdrawals:write")
      && html`<${Button} tone="quiet" onClick=${() => ask({ what: "signers" })}>
        ${config.enabled ? "Change" : "Name signers"}<//>`}>
      <${Config} config=${config} /><//>
    <${Card} title="Addresses that are paid" actions=${writing && html`<${Enforce} settings=${settings} ask=${ask} />`}>
      <${Facts} rows=${[
        ["Withdrawals", settings.whitelist_enforced ? "go to addresses of the whitelist alone" : "may go to any address"],
        ["Refunds and claim links", settings.whitelist_enforced
          ? elsewhere(settings.refundDailyLimitUSD)
          : "may go to any address"],
        ["Changed last", settings.updated_at && html`<${Time} at=${settings.updated_at} ago />`],
      ]} /><//>
    ${config.enabled && html`<${OtherChange} settings=${settings} />`}
    ${asked?.what === "signers"
      && html`<${Dialog} title=${config.enabled ? "Change the signers" : "Name signers"} close=${() => close()}>
      <${SignersForm} config=${config} cancel=${() => close()}
        done=${(next) => ask({ what: "change", change: { multisig_config: next } })} /><//>`}
    ${asked?.what === "limit" && html`<${Limit} settings=${settings} ask=${ask} close=${close} />`}
    ${asked?.what === "change" && html`<${Change} settings=${settings} change=${asked.change} close=${done} />`}
  <//>`;
}

function Config({ config }) {
  if (!config.enabled) {
    return html`<${Empty}
      title="Nobody has to sign">
      With signers, a withdrawal over an amount of yours waits until enough of them have signed it.<//>`;
  }
  return html`<${Facts} rows=${[
    ["State", html`<${Status} value="on" label="On" />`],
    ["Signatures needed", `${config.required_signatures} of ${config.total_signers}`],
    ["From this amount on", `${amount(config.threshold_amount)}, of whichever coin, in its own units`],
    ...config.signers.map((one) => [`Signer ${one.id}${one.role && ` (${one.role})`}`, html`<${Code} value=${one.public_key}
      what=${`public key of ${one.id}`} />`]),
  ]} />`;
}

function Enforce({ settings, ask }) {
  const on = settings.whitelist_enforced;
  return html`<${Button} tone="quiet" onClick=${() => ask({ what: "change", change: { whitelist_enforced: !on } })}>${
    on ? "Pay other addresses too" : "Pay the whitelist alone"}<//>
    ${on && html`<${Button} tone="quiet" onClick=${() => ask({ what: "limit" })}>Limit of refunds<//>`}`;
}

function Limit({ settings, ask, close }) {
  const fields = [{ name: "limit", label: "Most in US dollars in 24 hours", kind: "amount", value: settings.refundDailyLimitUSD,
    hint: "Of refunds and claim links to addresses that are not on the whitelist. 0 or empty: none." }];
  const submit = async (values) => {
    const limit = plainAmount(values.limit ?? "0");
    if (limit === null || (limit.split(".")[1] ?? "").length > 2) {
      const fault = { field: "limit", constraints: ["must be dollars, with at most two decimals"] };
      throw Object.assign(new Error("no amount"), { status: 400, fields: [fault] });
    }
    return { what: "change", change: { refundDailyLimitUSD: limit } };
  };
  return html`<${Dialog} title="Limit of refunds and claim links" close=${() => close()}>
    <${Form} fields=${fields} action="Go on" submit=${submit} done=${ask} cancel=${() => close()} /><//>`;
}

/** Makes a change of the settings, with signatures where they are needed. */
function Change({ settings, change, close }) {
  const after = { ...settings, ...change };
  const send = async (signatures) => {
    const body = signatures.length > 0 ? { ...change, signatures } : change;
    return (await put("/merchant/settings", body)).data;
  };
  const expected = () => (me().merchant ? settingsText(tenantOf(me().merchant), settings.revision, after) : null);
  return html`<${GuardedChange} title="Change the settings" send=${send} expected=${expected} close=${close}
    wants=${needed(settings.multisig_config, after.multisig_config)}><${Differences} before=${settings} after=${after} /><//>`;
}
