// Forms: drawn from a list of fields, sent once however often the button is pressed, with what is wrong at its field.
import { mayBeDone, newKey } from "./api.js";
import { Field, first, read } from "./fields.js";
import { words } from "./format.js";
import { Button, Failure, Notice } from "./parts.js";
import { html, useEffect, useId, useRef, useState } from "./ui.js";

const shownOf = (fields, values) => fields.filter((field) => !field.when || field.when(values));

/**
 * A form. A field is `{ name, label, kind: "text" | "amount" | "number" | "select" | "check" | "checks" | "time" | "area" |
 * "list" | "json" | "secret", hint, required, options, value, when(values), example, most, empty }`; `options` are values or
 * [value, label], or a function of the values. `submit(values, { key })` sends: `values` has what was typed, converted, without
 * what is empty; `key` is the Idempotency-Key, the same until the content changes. `done(result, values)` comes after success.
 * `below(values)` is drawn above the button, `change(values)` is told of each change. `danger` colours the button; `cancel`
 * adds a way out.
 */
export function Form({ fields, action, submit, done, danger = false, below, change, cancel, say }) {
  const prefix = useId();
  const [typed, type] = useState({});
  const [wrong, complain] = useState({});
  const [failure, fail] = useState(null);
  const [busy, work] = useState(false);
  const [again, safe] = useState(false);
  const [success, succeed] = useState(null);
  const running = useRef(false);
  const key = useRef(newKey());
  const form = useRef(null);
  // Of a button pressed right after a key: what was typed last counts, drawn or not.
  const latest = useRef(typed);
  const all = (from) => Object.fromEntries(fields.map((field) => [field.name, from[field.name] ?? first(field)]));
  const values = all(typed);
  const shown = shownOf(fields, values);
  const idOf = (name) => `${prefix}-${name}`;

  useEffect(() => {
    const name = shown.find((field) => wrong[field.name])?.name;
    if (name) form.current?.querySelector(`[id="${CSS.escape(idOf(name))}"]`)?.focus();
  }, [wrong]);

  const set = (name, value) => {
    // Other content is another request: it must not be answered with what was said to the first.
    key.current = newKey();
    latest.current = { ...latest.current, [name]: value };
    type(latest.current);
    succeed(null);
    if (wrong[name]) complain({ ...wrong, [name]: undefined });
    change?.(all(latest.current));
  };

  const send = async (event) => {
    event.preventDefault();
    if (running.current) return;
    const now = all(latest.current);
    const { content, problems } = converted(shownOf(fields, now), now);
    complain(problems);
    fail(null);
    if (Object.keys(problems).length > 0) return;
    running.current = true;
    work(true);
    let keyed = false;
    try {
      const result = await submit(content, { get key() { keyed = true; return key.current; } });
      key.current = newKey();
      if (say) succeed(typeof say === "function" ? say(result) : say);
      done?.(result, content);
    } catch (error) {
      const { named, rest } = sorted(error, shown);
      complain(named);
      fail(rest);
      safe(keyed && mayBeDone(error));
    } finally {
      running.current = false;
      work(false);
    }
  };

  return html`<form class="form" ref=${form} onSubmit=${send} novalidate autocomplete="off">
    ${failure && html`<${Failure} error=${failure} />`}
    ${failure && again
      && html`<p class="fine">It may have been done. To send it once more is safe: the same request is never done twice.</p>`}
    ${shown.map((field) =>
      html`<${Field} key=${field.name} field=${field} id=${idOf(field.name)} value=${values[field.name]} values=${values}
      problem=${wrong[field.name]} change=${(value) => set(field.name, value)} />`)}
    ${below?.(values)}
    <div class="actions"><${Button} type="submit" busy=${busy} tone=${danger ? "danger" : "main"}>${action}<//>
      ${cancel && html`<${Button} tone="quiet" onClick=${cancel}>Cancel<//>`}</div>
    ${success && html`<${Notice} tone="good">${success}<//>`}
  </form>`;
}

/** What was typed as it is sent, and what can not be. */
export function converted(fields, values) {
  const content = {};
  const problems = {};
  for (const field of fields) {
    try {
      const value = read(field, values[field.name]);
      if (value !== undefined) content[field.name] = value;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      problems[field.name] = `${field.label} ${error.message}`;
    }
  }
  return { content, problems };
}

/** A failure's wrong fields by the form's names, and the failure itself where it says more than that. */
function sorted(error, fields) {
  const named = {};
  let all = (error.fields ?? []).length > 0;
  for (const { field, constraints } of error.fields ?? []) {
    const own = fields.find(({ name }) => name === field || field.startsWith(`${name}.`) || field.startsWith(`${name}[`))
      ?? fields.find(({ name }) => field.endsWith(`.${name}`));
    if (own) named[own.name] = [named[own.name], sentence(field, own, constraints)].filter(Boolean).join("; ");
    else all = false;
  }
  return { named, rest: all ? null : error };
}

const sentence = (field, own, constraints) =>
  (field === own.name ? constraints.join(", ") : `${words(field)}: ${constraints.join(", ")}`);
