// Dialogs on <dialog>: the browser keeps the focus inside, Escape closes, and the focus goes back to where it was.
import { Button, Failure } from "./parts.js";
import { html, useEffect, useId, useLayoutEffect, useRef, useState } from "./ui.js";

/** A dialog, open as long as it is drawn. `close()` is called when a person leaves it; `hold`: it can not be left by Escape. */
export function Dialog({ title, close, hold = false, wide = false, children }) {
  const dialog = useRef(null);
  const gone = useRef(false);
  const id = useId();
  useLayoutEffect(() => {
    const before = document.activeElement;
    const own = dialog.current;
    own.showModal();
    return () => {
      gone.current = true;
      own.close();
      // What had the focus may be gone, with a page that gave way to another.
      (before !== document.body && before?.isConnected ? before : document.querySelector("main h1"))?.focus();
    };
  }, []);
  const leave = (event) => {
    event.preventDefault();
    if (!hold) close();
  };
  // A second Escape closes it whatever the page says: then it is gone for us too, or opened again where it must be held.
  const closed = () => {
    if (gone.current) return;
    if (hold) dialog.current.showModal();
    else close();
  };
  return html`<dialog ref=${dialog} class=${wide ? "wide" : ""} aria-labelledby=${id} onCancel=${leave} onClose=${closed}>
    <header class="top"><h2 id=${id}>${title}</h2>
      ${!hold && html`<button type="button" class="close" aria-label="Close" onClick=${close}>×</button>`}</header>
    ${children}
  </dialog>`;
}

/**
 * A question before something is done. `words` say what will happen, `action` is the button's text. Where `typed` is given, a
 * person must type exactly this text before the button works. `run()` does it; `close(result)` comes after it and when a person
 * leaves.
 */
export function Ask({ title, words, action, tone = "main", typed, run, close, children }) {
  const [entered, enter] = useState("");
  const [failure, fail] = useState(null);
  const [busy, work] = useState(false);
  const alive = useRef(true);
  const id = useId();
  useEffect(() => () => { alive.current = false; }, []);
  const ready = typed === undefined || entered.trim() === String(typed);
  const go = async (event) => {
    event.preventDefault();
    if (busy || !ready) return;
    work(true);
    fail(null);
    try {
      close(await run());
    } catch (error) {
      if (alive.current) fail(error);
    } finally {
      if (alive.current) work(false);
    }
  };
  return html`<${Dialog} title=${title} close=${() => close()} hold=${busy}>
    <form class="form" onSubmit=${go} autocomplete="off">
      <div class="said">${typeof words === "string" ? html`<p>${words}</p>` : words}</div>${children}
      ${typed !== undefined
        && html`<div class="field"><label for=${id}>Type <code class="plain">${typed}</code> to go on</label>
        <input type="text" id=${id} class="mono" value=${entered} autocomplete="off" autocapitalize="off" spellcheck=${false}
          onInput=${(event) => enter(event.currentTarget.value)} /></div>`}
      ${failure && html`<${Failure} error=${failure} />`}
      <div class="actions"><${Button} type="submit" tone=${tone} busy=${busy} disabled=${!ready}>${action}<//>
        <${Button} tone="quiet" onClick=${() => close()}>Not now<//></div>
    </form>
  <//>`;
}

/** Whether a dialog is open, and how to open and close it: `const [asked, ask, close] = useDialog()`. `ask(value)` opens. */
export function useDialog() {
  const [asked, ask] = useState(null);
  return [asked, (value = true) => ask(value), () => ask(null)];
}
