// A new key, shown once. Until a person says that it is stored, it stays in this page's memory: a wrong click must not lose it.
import { signal, useSignal } from "../app/signal.js";
import { Dialog } from "../app/dialog.js";
import { useLeaveWarning } from "../app/leaving.js";
import { Button, Copy, Notice } from "../app/parts.js";
import { useSession } from "../app/session.js";
import { html } from "../app/ui.js";

/**
 * `{ key, name, owner, leaving }`: the key itself, what it is called, the id of the key that was signed in when it was made, and
 * whether a person said that it is stored, and is asked once more. So another page's dialog goes on where one was.
 */
const unstored = signal(null);

/** Show the answer of a request that made a key. `owner` is the id of the key that is signed in. */
export const show = (made, owner) => unstored.set({ key: made.key, name: made.name, owner, leaving: false });

/** The dialog with a key that is not stored yet, if there is one; drawn on each page about keys. */
export function Unstored() {
  const found = useSignal(unstored);
  const { me } = useSession();
  const mine = found && me && found.owner === me.key_id ? found : null;
  useLeaveWarning(Boolean(mine));
  return mine && html`<${Shown} found=${mine} />`;
}

function Shown({ found }) {
  const leave = (leaving) => unstored.set({ ...found, leaving });
  return html`<${Dialog} title="Copy your new key now" hold wide>
    <p>This is <strong dir="auto">${found.name}</strong>. It is shown this once: nobody can show it to you again,
      and we keep no copy of it.</p>
    <p class="secret"><code tabindex="0" aria-label="The new API key">${found.key}</code>
      <${Copy} value=${found.key} what="the new key" /></p>
    <p class="fine">Store it where your program reads its secrets, or in a password manager.
      Anyone who has it can do what it may.</p>
    ${found.leaving
      ? html`<${Notice} tone="warn" title="Is it stored?">
          <p>After this the key can not be seen any more. A key that is lost has to be replaced.</p>
          <div class="actions"><${Button} onClick=${() => unstored.set(null)}>Yes, close it<//>
            <${Button} tone="quiet" onClick=${() => leave(false)}>Not yet<//></div><//>`
      : html`<div class="actions"><${Button} onClick=${() => leave(true)}>I have stored it<//></div>`}
  <//>`;
}
