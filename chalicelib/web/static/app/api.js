// Requests to the API of this origin: with the key of this tab, and never to any other place.
import { parseJson } from "./json.js";
import { readKey, refuse } from "./key.js";

const PATIENCE = 30_000;
const SEGMENT = /^[A-Za-z0-9._~!$&'()*+,;=:@%-]+$/;

/** An API key: addresses are kept in logs, so none is ever part of one. */
const SECRET = /sk_(live|test)_[A-Za-z0-9]{16}/;

/**
 * A request that failed. `status` 0: no answer. `code` is the API's, or "NO_ANSWER", "NO_CONNECTION", "UNREADABLE" of our own.
 * `fields` are the wrong fields, `[{ field, value, constraints }]`. `retryAfter` in seconds, or null.
 */
export class ApiFailure extends Error {
  constructor(message, known = {}) {
    super(message);
    this.name = "ApiFailure";
    this.status = known.status ?? 0;
    this.code = known.code ?? "NO_CONNECTION";
    this.fields = known.fields ?? [];
    this.details = known.details ?? null;
    this.requestId = known.requestId ?? null;
    this.retryAfter = known.retryAfter ?? null;
  }
}

/** A path with its values encoded: at`/invoices/${id}`. */
export function at(parts, ...values) {
  return parts.reduce((path, part, place) => path + encodeURIComponent(String(values[place - 1])) + part);
}

/**
 * The address of an API path below `base`, with its query. Values that are undefined, null or "" are left out; lists repeat.
 * Raises TypeError for a path that would lead elsewhere than it reads: parts may come from an address that somebody was sent.
 */
export function address(base, path, query = {}) {
  const parts = String(path).split("/").slice(1);
  if (!String(path).startsWith("/") || !parts.every(plain)) throw new TypeError(`not a path of the API: ${path}`);
  const wanted = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") wanted.append(name, String(one));
    }
  }
  const text = wanted.toString();
  if (SECRET.test(text) || SECRET.test(parts.join("/"))) {
    throw new ApiFailure("That has an API key in it: it was not looked for, and went nowhere.",
      { status: 400, code: "NOT_SENT" });
  }
  return `${base}v1/${parts.join("/")}${text ? `?${text}` : ""}`;
}

function plain(segment) {
  if (!SEGMENT.test(segment)) return false;
  let decoded;
  try {
    decoded = decodeURIComponent(segment);
  } catch {
    return false;
  }
  return decoded !== "." && decoded !== ".." && !/[/\\\u0000-\u001f]/.test(decoded);
}

/** The data of an answer's body and its page: out of the envelope where there is one. */
export function unwrapped(body) {
  if (body && typeof body === "object" && body.success === true && "data" in body) {
    return { data: body.data, page: body.meta?.pagination ?? null };
  }
  // The list of invoices has its rows and its page side by side, without an envelope.
  if (Array.isArray(body?.data) && body.meta?.pagination) return { data: body.data, page: body.meta.pagination };
  return { data: body, page: null };
}

/** What an error's body says, in whichever of the three published shapes. */
export function failureOf(status, body, headers = new Map()) {
  const flat = typeof body?.error === "string";
  const error = flat ? { message: body.error, code: body.code, details: body.details } : body?.error ?? {};
  const seconds = Number(headers.get("retry-after"));
  return new ApiFailure(error.message || `The service answered with ${status}.`, {
    status,
    code: error.code || "UNREADABLE",
    fields: fieldsOf(error.details),
    details: error.details ?? null,
    requestId: headers.get("x-request-id") ?? null,
    retryAfter: seconds > 0 ? seconds : null,
  });
}

/** The wrong fields in an error's details: a list, one field with its reason, or the same in words. */
function fieldsOf(details) {
  if (Array.isArray(details)) return details.filter((each) => each?.field);
  if (typeof details === "string") return inWords(details);
  if (details?.field && details.reason) return [{ field: details.field, value: null, constraints: [details.reason] }];
  return [];
}

function inWords(text) {
  const found = [...text.matchAll(/(?:^|; )([A-Za-z_][\w.[\]-]*): /g)].map((match, place, all) => ({
    field: match[1],
    words: text.slice(match.index + match[0].length, all[place + 1]?.index),
  }));
  const rule = found.find((each) => each.field === "reason");
  const named = found.find((each) => each.field === "field");
  if (rule && named) return [{ field: named.words, value: null, constraints: [rule.words] }];
  return found.map(({ field, words }) => ({ field, value: null, constraints: [words] }));
}

/**
 * One request: `{ data, page, replayed }`, where `replayed` says that the same request was answered before. `options`: `query`,
 * `body`, `key` (Idempotency-Key), `signal`, and `as`: a key other than this tab's, to sign in with.
 */
export async function request(method, path, options = {}) {
  const key = options.as ?? readKey();
  if (!key) throw new ApiFailure("Nobody is signed in.", { status: 401, code: "INVALID_API_KEY" });
  const ended = new AbortController();
  const timer = setTimeout(() => ended.abort("time"), PATIENCE);
  options.signal?.addEventListener("abort", () => ended.abort("caller"), { once: true });
  try {
    const answer = await fetch(address(new URL(document.baseURI).pathname, path, options.query),
      settings(method, key, options, ended));
    return await read(answer, options.as ? null : key);
  } catch (error) {
    throw ended.signal.aborted ? stopped(ended.signal.reason) : connection(error);
  } finally {
    clearTimeout(timer);
  }
}

function settings(method, key, options, ended) {
  const headers = { "X-Api-Key": key, Accept: "application/json" };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (options.key) headers["Idempotency-Key"] = options.key;
  return {
    method, headers, signal: ended.signal, mode: "same-origin", credentials: "omit", redirect: "error", cache: "no-store",
    referrerPolicy: "no-referrer", body: options.body === undefined ? undefined : JSON.stringify(options.body),
  };
}

/** `key`: that of the tab that the request was sent with; null where it was another one. */
async function read(answer, key) {
  const text = await answer.text();
  let body;
  try {
    body = text === "" ? null : parseJson(text);
  } catch {
    throw new ApiFailure("The answer can not be read.", {
      status: answer.status, code: "UNREADABLE", requestId: answer.headers.get("x-request-id"),
    });
  }
  if (answer.ok) return { ...unwrapped(body), replayed: answer.headers.get("idempotency-replayed") === "true" };
  const failure = failureOf(answer.status, body, answer.headers);
  // A late answer says nothing of a key that somebody signed in with since.
  if (answer.status === 401 && key !== null && key === readKey()) refuse(failure.message);
  throw failure;
}

function stopped(reason) {
  if (reason === "caller") return new ApiFailure("The request was given up.", { code: "GIVEN_UP" });
  return new ApiFailure("The service did not answer within 30 seconds.", { code: "NO_ANSWER" });
}

function connection(error) {
  if (error instanceof ApiFailure) return error;
  if (error instanceof TypeError && !/fetch|network|load/i.test(error.message)) return error;
  return new ApiFailure("The service can not be reached.", { code: "NO_CONNECTION" });
}

/** `{ data, page }` of what lies at `path`. */
export const get = (path, query, options = {}) => request("GET", path, { ...options, query });
export const post = (path, body = {}, options = {}) => request("POST", path, { ...options, body });
export const put = (path, body = {}, options = {}) => request("PUT", path, { ...options, body });
export const del = (path, body, options = {}) => request("DELETE", path, { ...options, body });

/** Whether a request that failed may have been done all the same: no answer came, or the gateway's own. */
export const mayBeDone = (failure) => failure.status === 0 || failure.status >= 500;

/** A fresh Idempotency-Key: one for each form, kept until its content changes. */
export function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
