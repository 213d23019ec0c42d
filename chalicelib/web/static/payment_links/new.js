// A new payment link.
import { at, post } from "../app/api.js";
import { Form } from "../app/form.js";
import { Card, Failure, Loading, Page } from "../app/parts.js";
import { go } from "../app/router.js";
import { html } from "../app/ui.js";
import { useCoins } from "../catalogue/coins.js";
import { linkFields, newLink } from "./fields.js";

/** The page "New payment link". */
export default function NewPaymentLink() {
  const coins = useCoins();
  return html`<${Page} title="New payment link" lead="A page that makes an invoice for each visitor who wants to pay.">
    <${Failure} error=${coins.error} again=${coins.again} title="The coins could not be loaded" />
    ${coins.ready || coins.error
      ? html`<${Card}><${Form} fields=${linkFields(coins)} action="Make the payment link"
          submit=${async (values, { key }) => (await post("/payment-links", newLink(values), { key })).data}
          done=${(link) => go(at`/payment-links/${link.id}`, { made: "1" })} /><//>`
      : html`<${Loading} />`}
  <//>`;
}
