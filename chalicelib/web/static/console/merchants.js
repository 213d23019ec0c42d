// All merchants, and making one.
import { at, post } from "../app/api.js";
import { Dialog, useDialog } from "../app/dialog.js";
import { Form } from "../app/form.js";
import { List } from "../app/list.js";
import { Button, Code, Empty, Page, Status, Time } from "../app/parts.js";
import { go } from "../app/router.js";
import { can } from "../app/session.js";
import { html } from "../app/ui.js";

const FIELDS = [{ name: "name", label: "Name", kind: "text", required: true, most: 100, example: "Acme Shoes",
  hint: "What you call it. Payers see the name that the merchant sets itself." }];

/** The page "Merchants". */
export default function Merchants() {
  const [asked, ask, close] = useDialog();
  const columns = [
    { name: "name", label: "Name", sort: true },
    { name: "status", label: "Status", sort: true, show: (row) => html`<${Status} value=${row.status} />` },
    { name: "id", label: "Id", show: (row) => html`<${Code} value=${row.id} />` },
    { name: "created_at", label: "Made", sort: true, show: (row) => html`<${Time} at=${row.created_at} />` },
  ];
  const filters = [
    { name: "name", label: "Name", kind: "text", op: "like" },
    { name: "status", label: "Status", kind: "select", options: ["active", "suspended"] },
    { name: "id", label: "Id", kind: "text" },
    { name: "created_at", label: "Made", kind: "time" },
  ];
  const make = async (values, { key }) => (await post("/merchants", values, { key })).data;
  const made = (merchant) => {
    close();
    go(at`/merchants/${merchant.id}`);
  };
  return html`<${Page} title="Merchants" actions=${can("merchant:write") && html`<${Button}
    onClick=${() => ask()}>Make a merchant<//>`}>
    <${List} path="/merchants" label="Merchants" columns=${columns} filters=${filters} to=${(row) => at`/merchants/${row.id}`}
      empty=${html`<${Empty} title="No merchant yet">Make one, then its first API key, and hand that over.<//>`} />
    ${asked && html`<${Dialog} title="Make a merchant" close=${close}><${Form} fields=${FIELDS} action="Make" submit=${make}
      done=${made} cancel=${close} /><//>`}
  <//>`;
}
