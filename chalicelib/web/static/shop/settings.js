// What payers see of the shop on the checkout, payment links and claim pages: name, logo, colour, and who may frame them.
import { put } from "../app/api.js";
import { Form } from "../app/form.js";
import { Button, Card, Facts, Failure, Loading, Notice, Page } from "../app/parts.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html, useId, useRef, useState } from "../app/ui.js";
import { pngOf } from "./images.js";
import { unnested } from "../app/nested_errors.js";
import { COLOR, USUAL, readable, shopChange, shopFields } from "./fields.js";

/** The page "Checkout" of the settings. */
export default function CheckoutSettings() {
  const { data, error, loading, again, put: show } = useGet("/merchant/settings");
  const [typed, type] = useState(null);
  const shop = data?.shop;
  const save = async (change) => {
    if (Object.keys(change).length === 0) return data;
    return (await unnested("shop", () => put("/merchant/settings", { shop: change }))).data;
  };
  return html`<${Page} title="Checkout settings"
    lead="Payers see this on checkouts, payment links and claim pages, within 30 seconds.">
    <${Failure} error=${error} again=${again} />
    ${loading && !data && html`<${Loading} />`}
    ${shop && html`<div class="columns">
      <div class="page">${can("merchant:write")
        ? html`<${Card} title="Shop"><${Form} fields=${shopFields(shop)} action="Save"
          say="Saved. The pages show it within 30 seconds." change=${type}
            submit=${(values) => save(shopChange(shop, values))} done=${show} /><//>
          <${Logo} shop=${shop} save=${save} done=${show} />`
        : html`<${ReadOnly} shop=${shop} />`}</div>
      <${Preview} shop=${shop} typed=${typed ?? shop} /></div>`}
  <//>`;
}

const pictureOf = (logo) => `data:image/png;base64,${logo}`;

function Logo({ shop, save, done }) {
  const input = useRef(null);
  const id = useId();
  const [failure, fail] = useState(null);
  const [said, say] = useState("");
  const [busy, work] = useState(false);
  const send = async (change, words) => {
    work(true);
    fail(null);
    say("");
    try {
      const { logo, text } = await change();
      done(await save({ logo }));
      say(text ?? words);
    } catch (error) {
      fail(error);
    } finally {
      work(false);
      if (input.current) input.current.value = "";
    }
  };
  const picked = (event) => {
    const [file] = event.currentTarget.files;
    if (file && !busy) send(async () => {
      const { png, width, height, converted } = await pngOf(file);
      return { logo: png, text: `Saved${converted ? `, as a PNG of ${width} by ${height} pixels` : ""}.` };
    });
  };
  return html`<${Card} title="Logo">
    ${failure && html`<${Failure} error=${failure} />`}
    <div class="field"><label for=${id}>${shop.logo ? "Another picture" : "Picture"}</label>
      <input id=${id} ref=${input} type="file" accept="image/png,image/jpeg,image/webp,image/gif,image/svg+xml"
        aria-describedby=${`${id}-hint`} disabled=${busy} onChange=${picked} />
      <p class="hint" id=${`${id}-hint`}>At most 512 by 512 pixels and 64 KiB as a PNG; anything else is converted here in the
      browser. What else the file carries is dropped.</p></div>
    ${shop.logo && html`<div class="actions"><${Button} tone="quiet" busy=${busy}
      onClick=${() => send(async () => ({ logo: null }), "The logo is gone.")}>Remove the logo<//></div>`}
    <p role="status">${busy ? "Saving…" : said}</p><//>`;
}

/** How the head of a page will look. */
function Preview({ shop, typed }) {
  const color = COLOR.test(typed.color ?? "") ? typed.color : USUAL;
  return html`<${Card} title="Preview"><div class="shop-preview">
    <p class="shop-head">${shop.logo && html`<img src=${pictureOf(shop.logo)} alt="" width="40" height="40" />`}
      <b dir="auto">${typed.name || "Your shop"}</b></p>
    <p class="big">49.90 EUR</p>
    <p><span class="shop-button" style=${{ background: color, color: readable(color) }}>Open the wallet</span></p></div>
    <p class="fine">The real page has the price, the address and a code to scan.</p><//>`;
}

function ReadOnly({ shop }) {
  return html`<${Notice}>This key may look, and not change them.<//><${Card} title="Shop"><${Facts} rows=${[
    ["Name", shop.name ?? "None"],
    ["Colour", shop.color ?? `The usual one, ${USUAL}`],
    ["May be framed by", (shop.frameAncestors ?? []).join(", ") || "Nobody"],
  ]} /><//>`;
}
