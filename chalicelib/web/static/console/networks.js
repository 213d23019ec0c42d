// The networks, each with its lag, its halts and its nodes.
import { Failure, Loading, Page } from "../app/parts.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { Networks } from "./network_table.js";

/** The page "Networks". */
export default function AllNetworks() {
  const { data, error, loading, again } = useGet("/networks", {}, { every: 15 });
  return html`<${Page} title="Networks"
    lead="How far each chain is scanned. What is behind is credited late; nothing is credited on a network that is halted.">
    <${Failure} error=${error} again=${again} />
    ${loading && !data && html`<${Loading} />`}
    ${data && html`<${Networks} networks=${data} />`}
  <//>`;
}
