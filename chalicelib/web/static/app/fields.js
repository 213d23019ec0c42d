// The kinds of fields that a form has: how what was typed becomes the value that is sent, and how each is drawn.
import { isAmount } from "./format.js";
import { html } from "./ui.js";

/** What a field begins with. */
export function first(field) {
  if (field.value !== undefined && field.value !== null) return shown(field, field.value);
  return { check: false, checks: [] }[field.kind] ?? "";
}

/** A value of the API as it is typed. */
function shown(field, value) {
  if (field.kind === "list") return Array.isArray(value) ? value.join("\n") : String(value);
  if (field.kind === "json") return typeof value === "string" ? value : JSON.stringify(value, null, 2);
  if (field.kind === "time") return localTime(value);
  if (field.kind === "check") return Boolean(value);
  if (field.kind === "checks") return [...value];
  return String(value);
}

/** ISO 8601 as a datetime-local field has it, in the reader's zone. */
function localTime(at) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const READ = {
  amount: (text) => {
    if (!isAmount(text)) throw new RangeError("must be an amount such as 12.5, with a point and without separators");
    return text;
  },
  number: (text) => {
    if (!/^-?\d{1,15}(\.\d+)?$/.test(text)) throw new RangeError("must be a number");
    return Number(text);
  },
  time: (text) => {
    const date = new Date(text);
    if (Number.isNaN(date.getTime())) throw new RangeError("must be a date and a time");
    return date.toISOString();
  },
  list: (text) => text.split(/[\n,]/).map((line) => line.trim()).filter(Boolean),
  json: (text) => {
    try {
      return JSON.parse(text);
    } catch {
      throw new RangeError("must be JSON");
    }
  },
};

/** The value to send; undefined where nothing was typed. Raises RangeError with the constraint in words. */
export function read(field, typed) {
  if (field.kind === "check") return Boolean(typed);
  if (field.kind === "checks") {
    if (field.required && typed.length === 0) throw new RangeError("must have at least one");
    return typed;
  }
  const text = field.exact ? String(typed) : String(typed ?? "").trim();
  if (text === "") {
    if (field.required) throw new RangeError("is required");
    return undefined;
  }
  return (READ[field.kind] ?? ((same) => same))(text);
}

const options = (field, values) => {
  const found = typeof field.options === "function" ? field.options(values) : field.options ?? [];
  return found.map((each) => (Array.isArray(each) ? each : [each, each]));
};

/** One field with its label, its hint and what is wrong with it. */
export function Field({ field, id, value, values, problem, change }) {
  const described = [field.hint && `${id}-hint`, problem && `${id}-wrong`].filter(Boolean).join(" ") || null;
  const common = { id, name: field.name, "aria-describedby": described, "aria-invalid": problem ? "true" : null };
  const input = control(field, common, value, values, change);
  const hint = field.hint && html`<p class="hint" id=${`${id}-hint`}>${field.hint}</p>`;
  const wrong = problem && html`<p class="wrong" id=${`${id}-wrong`}>${problem}</p>`;
  if (field.kind === "check")
    return html`<div class="field check"><label>${input}<span>${field.label}</span></label>${hint}${wrong}</div>`;
  if (field.kind === "checks") {
    return html`<fieldset class="field" aria-describedby=${described} id=${id} tabindex="-1"><legend>${field.label}</legend>
      ${hint}${input}${wrong}</fieldset>`;
  }
  return html`<div class="field">
    <label for=${id}>${field.label}${!field.required && html` <span class="soft">(optional)</span>`}</label>
    ${input}${hint}${wrong}</div>`;
}

function control(field, common, value, values, change) {
  const type = (event) => change(event.currentTarget.value);
  const required = field.required ? "true" : null;
  if (field.kind === "check") {
    return html`<input type="checkbox" ...${common} checked=${value}
      onChange=${(event) => change(event.currentTarget.checked)} />`;
  }
  if (field.kind === "checks") return checks(field, value, values, change);
  if (field.kind === "select") {
    return html`<select ...${common} value=${value} aria-required=${required} onChange=${type}>
      ${(!field.required || value === "") && html`<option value="">${field.empty ?? "Choose…"}</option>`}
      ${options(field, values).map(([name, label]) =>
        html`<option value=${name} selected=${String(name) === value}>${label}</option>`)}
    </select>`;
  }
  if (["area", "list", "json"].includes(field.kind)) {
    return html`<textarea ...${common} rows=${field.rows ?? 4} aria-required=${required} value=${value} maxlength=${field.most}
      spellcheck=${field.kind === "area"} class=${field.kind === "area" ? "" : "mono"} onInput=${type}></textarea>`;
  }
  const kinds = { time: "datetime-local", secret: "password" };
  const mode = { amount: "decimal", number: "decimal" }[field.kind];
  return html`<input type=${kinds[field.kind] ?? "text"} ...${common} value=${value} inputmode=${mode} maxlength=${field.most}
    placeholder=${field.example}
    aria-required=${required} autocomplete="off" autocapitalize="off" spellcheck=${false} class=${field.mono ? "mono" : ""}
    onInput=${type} />`;
}

function checks(field, value, values, change) {
  return html`<div class="checks">${options(field, values).map(
    ([name, label]) =>
      html`<label class="check" key=${name}><input type="checkbox" checked=${value.includes(name)} onChange=${(event) =>
      change(event.currentTarget.checked ? [...value, name] : value.filter((each) => each !== name))} />
        <span>${label}</span></label>`,
  )}</div>`;
}
