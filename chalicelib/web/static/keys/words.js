// API keys in plain words: what a key may do, from where, and how long; and what a form about a key sends.
import { PERMISSIONS, inWords } from "../app/permissions.js";
import { countOf } from "../app/format.js";

const NAMES = PERMISSIONS.map(([name]) => name);
const NOT_WRITE = ["withdrawals:create", "withdrawals:write", "keys:write"];

/** What a preset of the API stands for. The API's own rule is the same: domain/merchants/merchants.py. */
export const PRESETS = {
  "read-only": NAMES.filter((name) => name.endsWith(":read")),
  write: NAMES.filter((name) => !NOT_WRITE.includes(name)),
  full: NAMES,
};

const PRESET_WORDS = {
  "read-only": "Look, and change nothing",
  write: "Work, without sending money and without API keys",
  full: "Everything",
};

/** The choices of a form for somebody who holds `held`: presets that lie within it, and a choice of one's own. */
export function choices(held) {
  const has = new Set(held);
  const fits = Object.keys(PRESETS).filter((name) => PRESETS[name].every((permission) => has.has(permission)));
  return [...fits.map((name) => [name, PRESET_WORDS[name]]), ["chosen", "What I choose below"]];
}

/** The preset that is exactly these permissions, else "chosen". */
export function presetOf(permissions) {
  const found = new Set(permissions);
  const same = (name) => PRESETS[name].length === found.size && PRESETS[name].every((each) => found.has(each));
  return Object.keys(PRESETS).find(same) ?? "chosen";
}

/** What permissions let a key do, in a few words. */
export function summary(permissions) {
  const preset = presetOf(permissions);
  if (preset !== "chosen") return PRESET_WORDS[preset];
  const first = permissions.slice(0, 2).map(inWords);
  const more = permissions.length > 2 ? [`and ${countOf(permissions.length - 2, "other thing")}`] : [];
  return [...first.slice(0, 1), ...first.slice(1).map(small), ...more].join(", ");
}

const small = (text) => text.charAt(0).toLowerCase() + text.slice(1);

/** What is dangerous in permissions, in a sentence each. In the sandbox nothing is: there is no money. */
export function dangers(permissions, type = "production") {
  if (type === "test") return [];
  const has = new Set(permissions);
  return [
    has.has("withdrawals:create") && "It can send money away.",
    has.has("withdrawals:write") && "It can approve and cancel payments that wait.",
    has.has("keys:write") && "It can make other keys, and revoke yours.",
    has.has("merchant:write") && "It can change limits and approval rules of the merchant.",
    has.has("whitelist:write") && "It can add addresses that money may be sent to.",
  ].filter(Boolean);
}

const environment = (key) => (key.type === "test" ? "Test" : "Production");

/** A key's environment and level: "Test", "Production, admin". */
export const kind = (key) => (key.level === "admin" ? `${environment(key)}, admin` : environment(key));

/** The body that makes a key, of a form's values. What is left empty is left out: then it is as the maker's. */
export function made(values) {
  const body = { name: values.name, permissions: permissionsOf(values) };
  if (values.type) body.type = values.type;
  if (values.level && values.level !== "client") body.level = values.level;
  const restrictions = restrictionsOf(values);
  if (Object.keys(restrictions).length > 0) body.restrictions = restrictions;
  if (values.expires_at) body.expires_at = values.expires_at;
  return body;
}

/** The body that changes a key: what differs from `key` alone, so that nothing is asked for that stays. */
export function changed(values, key) {
  const body = {};
  const permissions = permissionsOf(values);
  if (values.name !== key.name) body.name = values.name;
  if (!same(permissions.flatMap((name) => PRESETS[name] ?? [name]), key.permissions)) body.permissions = permissions;
  const restrictions = {};
  const addresses = values["restrictions.ip_whitelist"] ?? [];
  if (!same(addresses, key.restrictions.ip_whitelist)) restrictions.ip_whitelist = addresses;
  for (const name of ["rate_limit", "daily_limit"]) {
    const wanted = values[`restrictions.${name}`] ?? null;
    if (wanted !== key.restrictions[name]) restrictions[name] = wanted;
  }
  if (Object.keys(restrictions).length > 0) body.restrictions = restrictions;
  if (!sameMinute(values.expires_at, key.expires_at)) body.expires_at = values.expires_at ?? null;
  return body;
}

/** The permissions that a form's values stand for: a preset by its name, or those that were ticked. */
export const permissionsOf = (values) => (values.preset === "chosen" ? values.permissions ?? [] : [values.preset]);

function restrictionsOf(values) {
  const found = {
    ip_whitelist: values["restrictions.ip_whitelist"], rate_limit: values["restrictions.rate_limit"],
    daily_limit: values["restrictions.daily_limit"],
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined && value?.length !== 0));
}

const same = (one, other) => one.length === other.length && [...one].sort().join() === [...other].sort().join();

// A field for a time has no seconds: an end that was not touched must not look like another one.
const minute = (at) => (at ? Math.floor(new Date(at).getTime() / 60_000) : null);
const sameMinute = (one, other) => minute(one) === minute(other);

/** What a person types to confirm something about a key: its name, or what it begins with where that can not be typed. */
export function toType(key) {
  const name = key.name.trim();
  return /^[\x21-\x7e]+( [\x21-\x7e]+)*$/.test(name) ? name : key.key_prefix;
}
