// A new API key, shown once.
import { showOnce } from "../app/shown_once.js";
import { html } from "../app/ui.js";

/** Show the answer of a request that made a key. `owners` are the ids of the keys that see it. */
export const show = (made, ...owners) => showOnce({
  title: "Copy your new key now", secret: made.key, name: "The new API key", owners,
  words: html`<p>This is <strong dir="auto">${made.name}</strong>. We keep no copy of it. Store it where your program reads its
    secrets, or in a password manager. Anyone who has it can do what it may.</p>`,
  lost: "A key that is lost has to be replaced.",
});
