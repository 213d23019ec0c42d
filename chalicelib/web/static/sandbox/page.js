// The sandbox on one page: everything that can be made to happen on the simulated networks.
import { Card, Page } from "../app/parts.js";
import { html } from "../app/ui.js";
import { ClockForm, MineForm, PayForm, RateForm, ReorgForm, SettleForm } from "./forms.js";

/** The page "Sandbox". */
export default function Sandbox({ query }) {
  return html`<${Page} title="Sandbox"
    lead="Rehearse here what happens on real networks: payments, reorganisations, failed withdrawals, and time.">
    <div class="columns">
      <${Card} title="Pay"><p class="soft">Into any address of a simulated network, yours or not.</p><${PayForm} to=${query}
        /><//>
      <${Card} title="Mine blocks"><p class="soft">Payments get their confirmations.</p><${MineForm} /><//>
      <${Card} title="Reorganise"><p class="soft">The last blocks are replaced by others. All merchants of this sandbox share
        its networks.</p><${ReorgForm} /><//>
      <${Card} title="Settle a withdrawal"><p class="soft">Before it is sent, or while it waits for its
        block.</p><${SettleForm} id=${undefined} /><//>
      <${Card} title="Move the clock"><p class="soft">Invoices expire and limits end as if the time had passed. It never goes
        back, and all merchants of this sandbox share it.</p><${ClockForm} /><//>
      <${Card} title="Set a rate"><p class="soft">For your own prices in fiat, from now on.</p><${RateForm} /><//>
    </div>
  <//>`;
}
