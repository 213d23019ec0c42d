// The kill switch: all outgoing payments of this environment, stopped at once or let go on.
import { put } from "../app/api.js";
import { Ask, useDialog } from "../app/dialog.js";
import { Button, Card, Facts, Failure, Loading, Notice, Page, Time } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html, useState } from "../app/ui.js";

const RESUME = "resume payments";

/** The page "Kill switch". */
export default function Payments({ me }) {
  const { data, error, loading, again, put: show } = useGet("/withdrawals/switch", {}, { every: 15 });
  const [asked, ask, close] = useDialog();
  const where = me.type === "test" ? "of the sandbox" : "of real money";
  const ended = (result) => {
    close();
    if (result) show(result);
  };
  const may = can("withdrawals:write");
  return html`<${Page} title="Kill switch"
    lead=${`Stops all outgoing payments ${where}, of every merchant and network, at once.`}>
    <${Failure} error=${error} again=${again} />
    ${loading && !data && html`<${Loading} />`}
    ${data && (data.stopped ? html`<${Notice} tone="bad" title="Payments are stopped" actions=${may && html`<${Button}
      onClick=${() => ask("resume")}>Let payments go on<//>`}>
        <p>${data.reason ?? "No reason was given."}</p>
        <p>Withdrawals wait. They go on by themselves, oldest first, once payments go on.</p><//>`
      : html`<${Notice} tone="good" title="Payments go out" actions=${may && html`<${Button} tone="danger"
        onClick=${() => ask("stop")}>Stop all payments<//>`}>
        <p>Stop them where a key may have leaked, or balances look wrong.</p><//>`)}
    ${data && !may && html`<p class="soft">This key may look, and not throw the switch.</p>`}
    ${data && html`<${Card} title="What the switch does"><ul class="plain">
      <li>From the answer on nothing is signed for anybody, and nothing that is signed is sent, sent again or replaced.</li>
      <li>What a node has already, the chain decides.</li>
      <li>Deposits, invoices and moves between our own wallets go on. Withdrawals can be asked for,
        and <${Link} to="/withdrawals" query=${{ pending_reason: "halted" }}>wait<//>.</li></ul>
      <${Facts} rows=${[["Changed", data.changed_at
        && html`<${Time} at=${data.changed_at} ago=${true} />`], ["By", data.changed_by
          && html`<code>${data.changed_by}</code>`]]} /><//>`}
    ${asked === "stop" && html`<${Stop} close=${ended} />`}
    ${asked === "resume" && html`<${Ask} title="Let payments go on?" action="Let payments go on" typed=${RESUME} close=${ended}
      words=${`Everything that waits is paid, oldest first: outgoing payments ${where}. `
        + "Whatever made somebody stop them has to be over."}
      run=${async () => (await put("/withdrawals/switch", { stopped: false })).data} />`}
  <//>`;
}

function Stop({ close }) {
  const [reason, write] = useState("");
  const run = async () =>
    (await put("/withdrawals/switch", reason.trim() ? { stopped: true, reason: reason.trim() } : { stopped: true })).data;
  return html`<${Ask} title="Stop all payments?" action="Stop all payments" tone="danger" run=${run} close=${close}
    words="It works at once. Merchants see that their withdrawals wait.">
    <div class="field"><label for="why">Reason <span class="soft">(for other operators)</span></label>
      <input id="why" type="text" maxlength="200" value=${reason} autocomplete="off"
        onInput=${(event) => write(event.currentTarget.value)} /></div><//>`;
}
