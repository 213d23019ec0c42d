// Secrets and claim links that the API answers once, such as a new key. The frame holds them over every page: a click on
// the menu or a step back must not lose one.
import { Dialog } from "./dialog.js";
import { useLeaveWarning } from "./leaving.js";
import { Button, Copy, Facts, Notice } from "./parts.js";
import { me } from "./session.js";
import { signal, useSignal } from "./signal.js";
import { html, useLayoutEffect, useRef, useState } from "./ui.js";

/** What was shown and is not stored yet, the oldest first. It lies in this page's memory alone. */
const held = signal([]);

/**
 * Show `secret` until a person says that it is stored. `title` stands over it, `name` names it to a screen reader,
 * `words` say what it is for, `facts` are rows about it, `lost` says what to do without it. `owners` are the ids of the
 * keys that see it: the one that is signed in, unless others are given.
 */
export function showOnce(shown) {
  held.set([...held.value, { owners: [me()?.key_id], ...shown }]);
}

/** Show the secret that signs messages to a webhook, an endpoint's or an invoice's own one. */
export const showSigningSecret = (title, secret) => showOnce({
  title, secret, name: "The signing secret",
  words: html`<p>Your receiver verifies with it that a message is ours. Keep it where your receiver checks signatures.</p>`,
  lost: "A secret that is lost has to be replaced.",
});

/** The dialog with the oldest of them that the key `keyId` may see; drawn by the frame. */
export function ShownOnce({ keyId }) {
  const shown = useSignal(held).find(({ owners }) => owners.includes(keyId));
  useLeaveWarning(Boolean(shown));
  return shown && html`<${Shown} key=${shown.secret} shown=${shown} />`;
}

function Shown({ shown }) {
  const { title, secret, name, words, facts, lost } = shown;
  return html`<${Dialog} title=${title} hold wide>
    <${Notice} tone="warn" title="It is shown this once: copy it now">Nobody can show it to you again.<//>
    ${words}
    <p class="secret"><code dir="ltr" tabindex="0" aria-label=${name}>${secret}</code>
      <${Copy} value=${secret} what=${name} /></p>
    ${facts && html`<${Facts} rows=${facts} />`}
    <${Leave} lost=${lost} leave=${() => held.set(held.value.filter((each) => each !== shown))} />
  <//>`;
}

function Leave({ lost, leave }) {
  const [asked, ask] = useState(null);
  const own = useRef(null);
  // The button that was pressed is gone. The focus goes to the one that loses nothing: Enter may be held down.
  useLayoutEffect(() => {
    if (asked !== null) [...own.current.querySelectorAll("button")].at(-1).focus();
  }, [asked]);
  return html`<div ref=${own}>${asked
    ? html`<${Notice} tone="warn" title="Is it stored?"><p>After this it can not be seen any more. ${lost}</p>
        <div class="actions"><${Button} onClick=${leave}>Yes, close it<//>
          <${Button} tone="quiet" onClick=${() => ask(false)}>Not yet<//></div><//>`
    : html`<div class="actions"><${Button} onClick=${() => ask(true)}>I have stored it<//></div>`}</div>`;
}
