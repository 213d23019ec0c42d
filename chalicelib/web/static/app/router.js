// The address in the fragment: `#/invoices/inv_1?tab=payments`. It can be shared, kept and gone back to; no secret is ever in
// it.
import { signal, useSignal } from "./signal.js";
import { html } from "./ui.js";

/** `#/invoices/inv_1?tab=a` → `{ path: "/invoices/inv_1", query: { tab: "a" } }`. Anything else is the home page. */
export function parse(fragment) {
  const text = String(fragment).replace(/^#/, "");
  const [path, ...rest] = text.split("?");
  if (!path.startsWith("/")) return { path: "/", query: {} };
  return { path: path.replace(/\/+$/, "") || "/", query: Object.fromEntries(new URLSearchParams(rest.join("?"))) };
}

/** An API key that was pasted where it does not belong: browsers keep addresses. */
const SECRET = /sk_(live|test)_[A-Za-z0-9]{16}/;
const isShown = (value) => value !== undefined && value !== null && value !== "" && !SECRET.test(String(value));

/** The fragment of a path and a query. What is undefined, null or "" is left out, and what has an API key in it. */
export function fragment(path, query = {}) {
  const given = Object.entries(query ?? {}).filter(([, value]) => isShown(value));
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#${path}${text ? `?${text}` : ""}`;
}

/**
 * The parameters of `path` by `pattern` ("/invoices/:id"), or null where it is another page's. A part that is more than one is
 * refused.
 */
export function match(pattern, path) {
  const wanted = pattern.split("/");
  const given = path.split("/");
  if (wanted.length !== given.length) return null;
  const params = {};
  for (const [place, part] of wanted.entries()) {
    if (!part.startsWith(":")) {
      if (part !== given[place]) return null;
      continue;
    }
    const value = decoded(given[place]);
    if (!value || value === "." || value === ".." || /[/\\?#\u0000-\u001f]/.test(value)) return null;
    params[part.slice(1)] = value;
  }
  return params;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

const place = signal({ path: "/", query: {} });
/** Whether the next page that is drawn takes the focus to its heading. */
export const arriving = { now: false };

/** Follow the address from now on. */
export function follow() {
  const read = () => {
    const next = parse(location.hash);
    if (next.path !== place.value.path) arriving.now = true;
    place.set(next);
  };
  addEventListener("hashchange", read);
  addEventListener("popstate", read);
  place.set(parse(location.hash));
}

/** The link to a page, for an href: the shell's own address with the fragment, since `<base>` is another one. */
export const hrefTo = (to, query) => location.pathname + fragment(to, query);

/** Go to a page. `replace`: the step back leads past this one. */
export function go(to, query = {}, { replace = false } = {}) {
  if (!replace) {
    location.hash = fragment(to, query);
    return;
  }
  history.replaceState(null, "", hrefTo(to, query));
  const next = parse(location.hash);
  if (next.path !== place.value.path) arriving.now = true;
  place.set(next);
}

/** `{ path, query }` of now, and a drawing of the component when it changes. */
export const useRoute = () => useSignal(place);

/** A link to a page of ours: Link({ to: "/invoices", query: { status: "pending" }, class, children }). */
export function Link({ to, query, children, ...rest }) {
  return html`<a href=${hrefTo(to, query)} ...${rest}>${children}</a>`;
}
