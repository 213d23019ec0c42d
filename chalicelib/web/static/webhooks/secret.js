// A secret that is shown once: after it was made, and after a rotation.
import { Dialog } from "../app/dialog.js";
import { useLeaveWarning } from "../app/leaving.js";
import { Button, Copy, Notice } from "../app/parts.js";
import { html, useState } from "../app/ui.js";

/** Shows `secret` until a person says that it is kept. */
export function Secret({ title, secret, close }) {
  const [kept, keep] = useState(false);
  useLeaveWarning(!kept);
  return html`<${Dialog} title=${title} close=${close} hold=${!kept}>
    <${Notice} tone="warn" title="Keep it now">It is shown this once. Your receiver verifies with it that a message is ours.<//>
    <pre tabindex="0" aria-label="Secret">${secret}</pre>
    <div class="actions"><${Copy} value=${secret} label="Copy secret" /></div>
    <label class="check"><input type="checkbox" checked=${kept} onChange=${(event) => keep(event.currentTarget.checked)}
      /><span>I have kept it</span></label>
    <div class="actions"><${Button} disabled=${!kept} onClick=${close}>Done<//></div>
  <//>`;
}
