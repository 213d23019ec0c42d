// A webhook's signing secret, shown once: after it was made, and after a rotation.
import { showOnce } from "../app/shown_once.js";
import { html } from "../app/ui.js";

/** Show the signing secret of a webhook or of an invoice's own one. */
export const showSecret = (title, secret) => showOnce({
  title, secret, name: "The signing secret",
  words: html`<p>Your receiver verifies with it that a message is ours. Keep it where your receiver checks signatures.</p>`,
  lost: "A secret that is lost has to be replaced.",
});
