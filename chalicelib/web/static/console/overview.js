// The first page of the console: the networks.
import { Card, Failure, Loading, Page, Status } from "../app/parts.js";
import { Table } from "../app/list.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";

/** The page "Networks". */
export default function Networks() {
  const { data, error, loading, again } = useGet("/networks", {}, { every: 15 });
  const columns = [
    { name: "name", label: "Network" },
    { name: "status", label: "Status", show: (row) => html`<${Status} value=${row.status} />` },
    { name: "lastBlock", label: "Last block", align: "end" },
  ];
  return html`<${Page} title="Networks"><${Card} title="All networks">
    <${Failure} error=${error} again=${again} />
    ${loading && !data && html`<${Loading} />`}
    ${data && html`<${Table} label="Networks" columns=${columns} rows=${data} />`}
  <//><//>`;
}
