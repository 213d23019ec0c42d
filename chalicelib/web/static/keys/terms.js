// The form about a key's terms: for a new one, and for one that is changed.
import { Form } from "../app/form.js";
import { countOf } from "../app/format.js";
import { Notice } from "../app/parts.js";
import { PERMISSIONS, inWords } from "../app/permissions.js";
import { html } from "../app/ui.js";
import { PRESETS, choices, dangers, permissionsOf, presetOf } from "./words.js";

/**
 * `me` is the key that is signed in: nobody hands out more than they hold. `known` is the key to change, absent for a new one.
 * `submit(values, { key })`, `done(result)` and `cancel` as of a Form.
 */
export function Terms({ me, known, action, submit, done, cancel }) {
  // What the key to be changed holds already may stay, also where the one who changes it does not hold it.
  const offered = PERMISSIONS.filter(([name]) => me.permissions.includes(name) || known?.permissions.includes(name));
  const preset = known ? presetOf(known.permissions) : undefined;
  const presets = choices([...me.permissions, ...(known?.permissions ?? [])]);
  const fields = [
    {
      name: "name", label: "Name", required: true, most: 100, value: known?.name,
      hint: "What it is for, such as “Webshop” or “Accounting”.",
    },
    ...(known ? [] : ofNew(me)),
    {
      name: "preset", label: "What it may do", kind: "select", required: true, options: presets,
      value: presets.some(([name]) => name === preset) ? preset : known && "chosen", empty: "Choose what it may do…",
    },
    {
      name: "permissions", label: "It may", kind: "checks", required: true, options: offered, value: known?.permissions,
      hint: offered.length < PERMISSIONS.length ? "A key can be given only what yours may do itself." : undefined,
      when: (values) => values.preset === "chosen",
    },
    {
      name: "restrictions.ip_whitelist", label: "IP addresses that may use it", kind: "list", rows: 3,
      value: known?.restrictions.ip_whitelist,
      hint: `One address or range on each line: 203.0.113.7 or 203.0.113.0/24. Empty: ${known
        ? "any address" : "as your own key"}.`,
    },
    limit("rate_limit", "Requests a minute", known),
    limit("daily_limit", "Requests a day", known),
    {
      name: "expires_at", label: "Expires", kind: "time", value: known?.expires_at,
      hint: `In your time zone. Empty: ${known ? "never" : "as your own key"}.`,
    },
  ];
  const send = (values, more) => submit(values, more).catch((error) => complain(error, values));
  const below = (values) => html`<${Allowed} values=${values} type=${known?.type ?? values.type ?? me.type} />`;
  return html`<${Form} fields=${fields} action=${action} submit=${send} done=${done} cancel=${cancel} below=${below} />`;
}

const limit = (name, label, known) => ({
  name: `restrictions.${name}`, label, kind: "number", value: known?.restrictions[name],
  hint: `It can only lower what is usual for its environment. Empty: ${known ? "the usual" : "as your own key"}.`,
});

/** A wrong line of the addresses is named by what was typed, not by its number. */
function complain(error, values) {
  const lines = values["restrictions.ip_whitelist"] ?? [];
  error.fields = (error.fields ?? []).map((each) => {
    const line = /^restrictions\.ip_whitelist\.(\d+)$/.exec(each.field);
    if (!line) return each;
    const constraints = each.constraints.map((words) => `“${lines[Number(line[1])]}” ${words}`);
    return { ...each, field: "restrictions.ip_whitelist", constraints };
  });
  throw error;
}

/** What is decided once, when the key is made. */
function ofNew(me) {
  const type = {
    name: "type", label: "Environment", kind: "select", required: true, empty: "Choose the environment…",
    options: [["test", "Test: the sandbox, no real money"], ["production", "Production: real money"]],
    hint: "It can not be changed later.",
  };
  const level = {
    name: "level", label: "Level", kind: "select", required: true, value: "client",
    options: [["client", "Client: for the merchant's own"], ["admin", "Admin: the operator's routes, too"]],
  };
  return [me.type === "test" ? null : type, me.level === "admin" ? level : null].filter(Boolean);
}

/** What the choice lets the key do, before it is made. */
function Allowed({ values, type }) {
  const permissions = permissionsOf(values).flatMap((name) => PRESETS[name] ?? [name]).filter(Boolean);
  const warned = dangers(permissions, type);
  const title = permissions.includes("withdrawals:create") ? "This key can send your money" : "Hand it out with care";
  if (permissions.length === 0) return null;
  return html`<section aria-label="What this key may do" class="terms">
    ${values.preset !== "chosen" && html`<details>
      <summary>It may do ${countOf(permissions.length, "thing")}: show them</summary>
      <ul class="plain">${permissions.map((name) => html`<li key=${name}>${inWords(name)}</li>`)}</ul></details>`}
    ${warned.length > 0 && html`<${Notice} tone="warn" title=${title}>
      ${warned.map((text) => html`<p key=${text}>${text}</p>`)}<//>`}
  </section>`;
}
