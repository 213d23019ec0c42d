// Settings → API keys → Generate New Key.
import { at, post } from "../app/api.js";
import { Card, Notice, Page } from "../app/parts.js";
import { go } from "../app/router.js";
import { html } from "../app/ui.js";
import { Terms } from "./terms.js";
import { show } from "./shown.js";
import { made } from "./words.js";

/** The page "Generate New Key". */
export default function NewKey({ me }) {
  const submit = (values, { key }) => post("/api-keys", made(values), { key }).then(({ data }) => data);
  const done = (data) => {
    show(data, me.key_id);
    go(at`/settings/keys/${data.key_id}`);
  };
  return html`<${Page} title="Generate New Key" lead="The key itself is shown once, right after it is made.">
    ${me.type === "test" && html`<${Notice}>You are signed in with a test key, which makes test keys.
      Sign in with a production key to make one for real money.<//>`}
    <${Card}><${Terms} me=${me} action="Generate key" submit=${submit} done=${done} cancel=${() => go("/settings/keys")} /><//>
  <//>`;
}
