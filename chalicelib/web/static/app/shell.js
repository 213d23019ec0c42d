// The frame around all pages: signing in and out, the menu by permissions, and the page that the address names.
import { signal, useSignal } from "./signal.js";
import { inWords } from "./permissions.js";
import { Button, Failure, Loading, Notice, Page, place } from "./parts.js";
import { Link, follow, hrefTo, match, useRoute } from "./router.js";
import { resume, signOut, useSession, watchIdleness } from "./session.js";
import { ShownOnce } from "./shown_once.js";
import { SearchBox, SignIn } from "./signing_in.js";
import { Component, html, render, useCallback, useEffect, useRef, useState } from "./ui.js";

const OWN = [{ path: "/key", title: "This key", load: () => import("./own_key.js") }];
const opened = signal(false);

/** The permissions that a page needs, as a list. */
const needs = (page) => [page.needs ?? []].flat();

/** Why this key may not see a page, in words; null where it may. `page.test`: for test keys; `page.admin`: for admin keys. */
export function refusal(page, me) {
  const lacking = needs(page).filter((permission) => !me.permissions.includes(permission));
  if (page.admin && me.level !== "admin") return "It is the operator's: it needs an admin key.";
  if (page.test && me.type !== "test") return "It belongs to the sandbox: it needs a test key.";
  if (lacking.length > 0)
    return `It needs what this key may not: ${lacking.map((each) => `${inWords(each)} (${each})`).join("; ")}.`;
  return null;
}

/** The page of a path, and its parameters. */
export function find(pages, path) {
  for (const page of pages) {
    const params = match(page.path, path);
    if (params) return { page, params };
  }
  return { page: null, params: {} };
}

/** The menu: groups with the pages that this key may see. */
export function menu(pages, groups, me) {
  return groups
    .map((group) => [group, pages.filter((page) => page.menu === group && refusal(page, me) === null)])
    .filter(([, shown]) => shown.length > 0);
}

/**
 * Draw a page into the document. `pages` are `{ path: "/invoices/:id", title, needs, menu, also, load, test, admin }`, `groups`
 * the headings of the menu in their order, `search` the path of the search page. `only(me)` says why a key can not be used here
 * at all, or null; `above` is a component drawn over each page.
 */
export function start(shell) {
  const root = document.getElementById("app");
  place.name = shell.name;
  follow();
  watchIdleness();
  root.replaceChildren();
  render(html`<${Shell} shell=${{ ...shell, pages: [...shell.pages, ...OWN] }} />`, root);
}

function Shell({ shell }) {
  const { me, reason } = useSession();
  const [state, set] = useState({ ready: false, error: null });
  const go = useCallback(() => {
    set({ ready: false, error: null });
    resume().then(() => set({ ready: true, error: null }), (error) => set({ ready: false, error }));
  }, []);
  useEffect(go, [go]);
  const signedIn = Boolean(me);
  useEffect(() => {
    if (!signedIn) document.title = `Sign in · ${shell.name}`;
  }, [signedIn]);
  if (state.error) {
    return html`<main class="alone"><h1>${shell.name}</h1><${Failure} error=${state.error} again=${go} />
      <${Button} tone="quiet" onClick=${() => { signOut(); set({ ready: true, error: null }); }}>Sign out<//></main>`;
  }
  if (!state.ready) return html`<main class="alone"><h1>${shell.name}</h1><${Loading} /></main>`;
  if (!me) return html`<${SignIn} name=${shell.name} reason=${reason} only=${shell.only} />`;
  // The tab may hold a key that was typed at the other page of the two.
  const why = shell.only?.(me);
  if (why) return html`<${Barred} name=${shell.name} why=${why} />`;
  return html`<${Frame} shell=${shell} me=${me} />`;
}

function Barred({ name, why }) {
  useEffect(() => { document.title = `Not with this key · ${name}`; }, [name]);
  return html`<main class="alone"><h1>${name}</h1><${Notice} tone="warn" title="Not with this key">${why}<//>
    <div class="actions"><a class="button" href="portal">Open the portal</a>
      <${Button} tone="quiet" onClick=${() => signOut("asked")}>Use another key<//></div></main>`;
}

function Frame({ shell, me }) {
  const main = useRef(null);
  const skip = (event) => {
    event.preventDefault();
    main.current.querySelector("h1")?.focus();
  };
  return html`<div class="frame">
    <a class="skip" href=${location.pathname + location.hash} onClick=${skip}>To the content</a>
    <${Side} shell=${shell} me=${me} />
    <main ref=${main}><${ShownOnce} keyId=${me.key_id} />${shell.above && html`<${shell.above} me=${me} />`}
      <${Content} shell=${shell} me=${me} /></main>
  </div>`;
}

function Side({ shell, me }) {
  const { path } = useRoute();
  const open = useSignal(opened);
  const button = useRef(null);
  useEffect(() => opened.set(false), [path]);
  const leave = (event) => {
    if (event.key !== "Escape" || !open) return;
    opened.set(false);
    button.current?.focus();
  };
  return html`<header class="side" onKeyDown=${leave}>
    <div class="brand"><${Link} to="/" class="home"><img src=${icon()} alt="" width="26" height="26" />${shell.name}<//>
      <button type="button" class="menu" ref=${button} aria-expanded=${open ? "true" : "false"} aria-controls="menu"
        onClick=${() => opened.set(!open)}>Menu</button></div>
    <div id="menu" class=${open ? "open" : ""}>
      ${shell.search && html`<${SearchBox} to=${shell.search} />`}
      <nav aria-label="Pages">
        ${menu(shell.pages, shell.groups, me).map(([group, pages]) => html`<div key=${group} class="group">
        ${group && html`<p class="label" id=${`group-${group}`}>${group}</p>`}
        <ul aria-labelledby=${group ? `group-${group}` : null}>
          ${pages.map((page) => html`<li key=${page.path}><${Link} to=${page.path}
          aria-current=${isWithin(page, path) ? "page" : null}>${page.title}<//></li>`)}</ul></div>`)}</nav>
      <${Account} me=${me} />
    </div>
  </header>`;
}

const icon = () => document.querySelector("link[rel=icon]").getAttribute("href");

/** Whether `path` lies below a page of the menu, or below a path that the page lists in `also`. */
const isWithin = (page, path) => [page.path, ...(page.also ?? [])].some((each) =>
  path === each || (each !== "/" && path.startsWith(`${each}/`)));

function Account({ me }) {
  return html`<div class="account">
    <p class="who" dir="auto">${me.merchant?.name ?? me.name}</p>
    <p class="fine" dir="auto">
      ${me.merchant ? `Key: ${me.name}` : ""} <span class=${`badge ${me.type === "test" ? "warn" : "good"}`}>
      ${me.type === "test" ? "Test" : "Live"}</span>${
      me.level === "admin" && html` <span class="badge calm">Admin</span>`}</p>
    <p class="links"><${Link} to="/key">This key<//>
    <button type="button" class="link" onClick=${() => signOut("asked")}>Sign out</button></p>
  </div>`;
}

const loaded = new Map();

/** The page that the address names: loaded, or why it can not be shown. */
function Content({ shell, me }) {
  const { path, query } = useRoute();
  const { page, params } = find(shell.pages, path);
  const [, draw] = useState(0);
  const [failed, fail] = useState(null);
  const why = page && refusal(page, me);
  const wanted = page && !why ? page : null;
  useEffect(() => {
    fail(null);
    if (!wanted || loaded.has(wanted)) return;
    let here = true;
    wanted.load().then(
      (module) => {
        loaded.set(wanted, module.default);
        if (here) draw((count) => count + 1);
      },
      () => here && fail(wanted),
    );
    return () => { here = false; };
  }, [wanted]);
  if (!page) return html`<${Missing} path=${path} />`;
  if (why) return html`<${Refused} title=${page.title} why=${why} />`;
  if (failed === page) return html`<${Outdated} title=${page.title} />`;
  const Shown = loaded.get(page);
  if (!Shown) return html`<${Loading} />`;
  // Another object is another page: nothing of the last one's state may stay.
  return html`<${Fence} key=${path}><${Shown} params=${params} query=${query} me=${me} /><//>`;
}

function Missing({ path }) {
  return html`<${Page} title="There is no such page"><${Notice} tone="warn" title="Nothing lies at this address"
    actions=${html`<a class="button quiet" href=${hrefTo("/")}>To the first page</a>`}><p><code>${path}</code></p>
      <p>Look at the link again, or choose from the menu.</p><//><//>`;
}

function Refused({ title, why }) {
  return html`<${Page} title=${title}><${Notice} tone="warn" title="This key may not see this page"
    actions=${html`<${Link} to="/key" class="button quiet">What this key may do<//>
      <${Button} tone="quiet" onClick=${() => signOut("asked")}>Sign in with another key<//>`}>
    <p>${why}</p><//><//>`;
}

function Outdated({ title }) {
  return html`<${Page} title=${title}><${Notice} tone="warn" title="This part of the page could not be loaded"
    actions=${html`<${Button} onClick=${() => location.reload()}>Load again<//>`}>
    <p>The connection failed, or a new version of these pages is there. You stay signed in.</p><//><//>`;
}

/** A fault of ours in one page does not take the menu away. */
class Fence extends Component {
  componentDidCatch(error) {
    console.error(error);
    this.setState({ error });
  }

  render({ children }, { error }) {
    if (!error) return children;
    return html`<${Page} title="Something went wrong here"><${Notice} tone="bad" title="This page has a fault"
      actions=${html`<${Button} onClick=${() => location.reload()}>Load again<//>`}>
      <p>Nothing was sent by this. If it goes on, tell the operator what you did and these
        words: ${String(error?.message ?? error)}</p><//><//>`;
  }
}

