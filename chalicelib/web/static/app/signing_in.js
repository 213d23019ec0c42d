// The way in: the form for a key; and the field that takes anything pasted.
import { Form } from "./form.js";
import { IDLE_MINUTES } from "./key.js";
import { Notice } from "./parts.js";
import { arriving, go } from "./router.js";
import { isKey, signIn } from "./session.js";
import { html, useEffect, useId, useRef, useState } from "./ui.js";

const REASONS = {
  asked: ["good", "You are signed out", "The key is forgotten in this tab."],
  idle: ["calm", "You were signed out", `Nobody touched this page for ${IDLE_MINUTES} minutes, so the key was forgotten.`],
};

/** Sign in with a key. `reason` is why nobody is signed in any more, `only(me)` why a key can not be used here. */
export function SignIn({ name, reason, only }) {
  const submit = async ({ key }) => {
    if (!isKey(key))
      throw new Error("This does not look like an API key. It begins with sk_live_ or sk_test_, and has 16 characters after "
        + "it.");
    arriving.now = true;
    try {
      await signIn(key, only);
    } catch (error) {
      arriving.now = false;
      throw error.code === "INVALID_API_KEY"
        ? new Error("The service does not know this key. It may be mistyped, revoked, or of another deployment.") : error;
    }
  };
  const [tone, title, words] = REASONS[reason] ?? ["warn", "You were signed out", reason];
  const main = useRef(null);
  useEffect(() => main.current?.querySelector("input")?.focus(), []);
  return html`<main class="alone" ref=${main}><h1>${name}</h1>
    ${reason && html`<${Notice} tone=${tone} title=${title}>${words}<//>`}
    <${Form} fields=${[{ name: "key", label: "API key", kind: "secret", required: true, example: "sk_test_…" }]}
      action="Sign in" submit=${submit} />
    <p class="fine">The key stays in this tab alone. It is forgotten when you sign out, close the tab, or leave it
      for ${IDLE_MINUTES} minutes.</p>
    <p class="fine">Your first key comes from the operator of this service; with it you make others, each with
      what it may do.</p>
  </main>`;
}

/** The field at the top: a transaction, an address, an id. A key that is pasted here by mistake goes nowhere. */
export function SearchBox({ to }) {
  const id = useId();
  const [problem, complain] = useState("");
  const find = (event) => {
    event.preventDefault();
    const field = event.currentTarget.elements.q;
    const text = field.value.trim();
    if (!text) return;
    if (/sk_(live|test)_/.test(text)) {
      field.value = "";
      complain("That was an API key: it was not looked for, and went nowhere.");
      return;
    }
    complain("");
    go(to, { q: text.slice(0, 200) });
  };
  return html`<form class="search" role="search" onSubmit=${find}>
    <label class="hidden" for=${id}>Search: transaction, address, id or external id</label>
    <input id=${id} name="q" type="search" maxlength="300" placeholder="Search" autocomplete="off" autocapitalize="off"
      spellcheck=${false} />
    <button type="submit" class="button quiet">Find</button>
    <p class="wrong" role="status">${problem}</p></form>`;
}
