// One network: its scan and nodes, its configuration, and rescans of its blocks.
import { at, newKey, post, put } from "../app/api.js";
import { amount, countOf } from "../app/format.js";
import { Form } from "../app/form.js";
import { List, Table } from "../app/list.js";
import { Card, Empty, Facts, Failure, Loading, Notice, Out, Page, Progress, Status, Tabs, Time } from "../app/parts.js";
import { go } from "../app/router.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html, useState } from "../app/ui.js";
import { Standing } from "./network_table.js";
import { Command } from "./shared.js";
import { part, realmOf, standing, toneOfNode } from "./words.js";

/** The page of one network. */
export default function OneNetwork({ params, query, me }) {
  const path = at`/networks/${params.network}`;
  const { data, error, loading, again, put: show } = useGet(path, {}, { every: 15 });
  const tabs = [["scan", "Scan"], ["settings", "Configuration"], ["rescans", "Rescans"]];
  const chosen = tabs.some(([name]) => name === query.tab) ? query.tab : "scan";
  const choose = (tab) => go(path, tab === "scan" ? {} : { tab }, { replace: true });
  return html`<${Page} title=${data?.name ?? params.network}>
    <${Failure} error=${error} again=${again} />
    ${loading && !data && html`<${Loading} />`}
    ${data && html`<${Tabs} label="About this network" tabs=${tabs} chosen=${chosen} choose=${choose}>
      ${chosen === "scan" && html`<${Scan} network=${data} me=${me} />`}
      ${chosen === "settings" && html`<${Settings} network=${data} show=${show} />`}
      ${chosen === "rescans" && html`<${Rescans} network=${data} />`}
    <//>`}
  <//>`;
}

function Scan({ network, me }) {
  const { scan } = network;
  const { words, tone } = standing(network, Date.now());
  return html`
    ${scan?.halted && html`<${Notice} tone="bad" title="Nothing is credited on this network">
      <p>${scan.halted}</p><p>The command line takes it up again, once you know what became of the chain:</p>
      <${Command}>python -m infra.cli --stage STAGE resume ${network.network} --realm ${realmOf(me)}<//><//>`}
    ${!scan?.halted && words && ["warn", "bad"].includes(tone) && html`<${Notice}
      tone=${tone} title=${words}><p>${adviceOn(network)}</p><//>`}
    <${Card} title="Scan"><${Facts} rows=${[
      ["Standing", html`<${Standing} network=${network} />`],
      ["Last scanned block", network.lastBlock === null ? "none" : amount(network.lastBlock)],
      ["Its time", scan?.lastBlockAt && html`<${Time} at=${scan?.lastBlockAt} ago=${true} />`],
      ["Height of the chain, as last seen", scan?.tip === null ? "unknown" : amount(scan?.tip)],
      ["Behind", scan?.lagBlocks === null ? "unknown" : countOf(scan?.lagBlocks ?? 0, "block")],
      ["Backlog up to", scan?.backlogTo && amount(scan.backlogTo)],
      ["Last report of a poll", scan?.polledAt
        ? html`<${Time} at=${scan.polledAt} ago=${true} />` : network.isTestnet ? "none: it is simulated" : "none yet"],
      ["Confirmations", amount(network.confirmations)],
      ["Seconds between blocks", String(network.blockTime)],
      ["Explorer", network.explorerUrl && html`<${Out} href=${network.explorerUrl} />`],
    ]} /><//>
    <${Card} title="Nodes"><${Nodes} network=${network} /><//>`;
}

function adviceOn(network) {
  if ((network.scan?.nodes ?? []).some((node) => !["well", "unasked"].includes(node.state)))
    return "Look at its nodes below: take one that fails out of the configuration, or add another.";
  return "It catches up by itself as long as its nodes answer. If it does not get less within ten minutes, look at the alarms.";
}

function Nodes({ network }) {
  const nodes = network.scan?.nodes ?? [];
  if (nodes.length === 0) {
    return html`<${Empty} title=${network.isTestnet ? "A simulated network has no nodes" : "No poll has reported yet"}>${
      network.isTestnet
        ? "Its blocks are made here." : "Polls report once a minute, as soon as the network is active and has a node."}<//>`;
  }
  const columns = [
    { name: "number", label: "Node", show: (row) => `Node ${row.number}` },
    { name: "state", label: "State", show: (row) => html`<${Status} value=${row.state} tone=${toneOfNode(row.state)} />` },
    { name: "height", label: "Height", align: "end", show: (row) => (row.height === null ? "unknown" : amount(row.height)) },
    { name: "latencyMs", label: "Answers in", align: "end",
      show: (row) => (row.latencyMs === null ? "" : `${amount(row.latencyMs)} ms`) },
    { name: "error", label: "Last failure", show: (row) => row.error ?? html`<span class="soft">none</span>` },
    { name: "askedAt", label: "Asked", show: (row) => html`<${Time} at=${row.askedAt} ago=${true} />` },
  ];
  return html`<${Table} label="Nodes" columns=${columns} rows=${nodes} rowKey=${(row) => row.number} />
    <p class="fine">In the order of the configuration, as the last poll left them. Their addresses may hold a provider's secret,
      and are under Configuration alone.</p>`;
}

function Settings({ network, show }) {
  const simulated = network.isTestnet;
  if (!can("networks:write")) {
    return html`<${Card} title="Configuration"><${Facts} rows=${[
      ["Status", network.status], ["Confirmations", network.confirmations],
      ["Agreement above", network.agreementUsd && `$${network.agreementUsd}`],
    ]} /><p class="fine">To change it a key needs the permission to change networks.</p><//>`;
  }
  const live = (field) => (simulated ? [] : [field]);
  const fields = [
    { name: "name", label: "Name", kind: "text", required: true, value: network.name, most: 100 },
    { name: "status", label: "Status", kind: "select", required: true, value: network.status,
      options: [["active", "Active"], ["inactive", "Inactive: nothing is scanned or paid"]] },
    { name: "confirmationBlocks", label: "Confirmations", kind: "number", required: true, value: network.confirmationBlocks,
      hint: "Lowering it credits sooner what waits now. Every payment with fewer blocks on top can still be taken back by "
        + "the chain." },
    { name: "explorerUrl", label: "Explorer", kind: "text", value: network.explorerUrl,
      hint: "Where people look at the chain. https only." },
    ...live({ name: "rpcUrls", label: "Nodes", kind: "list", value: network.rpcUrls ?? [], mono: true,
      hint: "One a line, in the order in which they are asked. Secrets of providers are in them." }),
    ...live({ name: "agreementUsd", label: "Two nodes have to agree above (US dollars)", kind: "number",
      value: network.agreementUsd }),
    ...live({ name: "auditUsd", label: "Logs are compared with receipts above (US dollars)", kind: "number",
      value: network.auditUsd, hint: "EVM networks. Empty: above 1000." }),
  ];
  const submit = async (values) => {
    const body = { network: network.network };
    for (const field of fields) {
      const before = field.name === "rpcUrls" ? (network.rpcUrls ?? []) : (network[field.name] ?? null);
      const after = values[field.name] ?? null;
      if (JSON.stringify(before) !== JSON.stringify(after)) body[field.name] = after;
    }
    return (await put("/networks", body)).data;
  };
  return html`<${Card} title="Configuration"><${Form} fields=${fields} action="Save" submit=${submit}
    done=${(changed) => show({ ...network, ...changed })}
    say="Saved. The pollers follow within half a minute." /><//>`;
}

function Rescans({ network }) {
  const [round, again] = useState(0);
  const path = at`/networks/${network.network}/rescan`;
  const columns = [
    { name: "id", label: "Rescan", show: (row) => `Blocks ${amount(row.fromBlock)} to ${amount(row.toBlock)}` },
    { name: "status", label: "Status", show: (row) => html`<${Status} value=${row.status} />` },
    { name: "progress", label: "Progress", show: (row) => html`<${Progress} value=${part(row)} max=${100}
      label=${`Blocks ${row.fromBlock} to ${row.toBlock}`}>${
      row.scannedTo === null ? "not begun" : `up to block ${amount(row.scannedTo)}`}<//>` },
    { name: "createdAt", label: "Ordered", show: (row) => html`<${Time} at=${row.createdAt} />` },
  ];
  const fields = [
    { name: "fromBlock", label: "First block", kind: "number", required: true },
    { name: "toBlock", label: "Last block", kind: "number", required: true, value: network.lastBlock,
      hint: "At most 100,000 blocks at once, up to the last one that was scanned." },
  ];
  const order = async (values, { key }) => (await post(path, values, { key: key ?? newKey() })).data;
  return html`
    ${can("networks:write") && html`<${Card} title="Look again at blocks">
      <p class="soft">For tokens that were paid before their coin was registered, and addresses that were paid before the first
        scan. What was credited once is never credited twice.</p>
      <${Form} fields=${fields} action="Order a rescan" submit=${order} done=${() => again(round + 1)}
        say="Ordered. The poller begins within a minute." /><//>`}
    <${List} key=${round} path=${path} label="Rescans" columns=${columns} every=${15}
      filters=${[{ name: "status", label: "Status", kind: "select", options: ["pending", "running", "completed"] }]}
      empty=${html`<${Empty} title="No rescan was ordered">Ranges of blocks that are looked at again show up here with their
        progress.<//>`} />`;
}
