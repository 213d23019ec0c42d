// Service wallets, with what the ledger has and what the chain was seen to have side by side.
import { post } from "../app/api.js";
import { Dialog, useDialog } from "../app/dialog.js";
import { compare, words } from "../app/format.js";
import { Form } from "../app/form.js";
import { Table } from "../app/list.js";
import { Amount, Button, Card, Code, Empty, Failure, Loading, Notice, Page, Status, Time } from "../app/parts.js";
import { go } from "../app/router.js";
import { can } from "../app/session.js";
import { showOnce } from "../app/shown_once.js";
import { useGet } from "../app/use.js";
import { html, useState } from "../app/ui.js";
import { Command, useNetworks } from "./shared.js";
import { realmOf } from "./words.js";

const ROLES = { hot: "Hot wallet", tokens_collector: "Collector", cold: "Cold wallet", topup: "Top-up wallet" };

/** The page "Service wallets". */
export default function Wallets({ query, me }) {
  const { data, error, loading, again } = useGet("/addresses/service-wallets",
    { network: query.network, walletType: query.walletType }, { every: 60 });
  const [asked, ask, close] = useDialog();
  const [made, make] = useState(null);
  const networks = useNetworks();
  const registered = (result) => {
    close();
    make(result);
    if (result.privateKey) show(result);
    again();
  };
  const choose = (change) => go("/wallets", { ...query, ...change }, { replace: true });
  return html`<${Page} title="Service wallets"
    lead=${"The hot wallet pays withdrawals, the collector gathers tokens, the cold wallet stores. Ledger and chain "
      + "differ while payments are on their way."}
    actions=${can("addresses:create") && html`<${Button} onClick=${() => ask()}>Register a wallet<//>`}>
    ${made && html`<${Made} wallet=${made} />`}
    <form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${Choice} id="network" label="Network" value=${query.network}
        options=${networks} choose=${(network) => choose({ network })} />
      <${Choice} id="role" label="What for" value=${query.walletType}
        options=${Object.entries(ROLES)} choose=${(walletType) => choose({ walletType })} />
    </form>
    <${Failure} error=${error} again=${again} />
    ${loading && !data && html`<${Loading} />`}
    ${data?.length === 0
      && html`<${Empty} title="No wallet is registered">Withdrawals of a network wait until it has a hot wallet.<//>`}
    ${data?.map((wallet) => html`<${Wallet} key=${wallet.network + wallet.walletType} wallet=${wallet} me=${me} />`)}
    ${asked && html`<${Dialog} title="Register a wallet" close=${close}><${Register} networks=${networks} me=${me}
      done=${registered} cancel=${close} /><//>`}
  <//>`;
}

function Choice({ id, label, value = "", options, choose }) {
  return html`<div class="field"><label for=${id}>${label}</label><select id=${id} value=${value}
    onChange=${(event) => choose(event.currentTarget.value || undefined)}>
    <option value="">All</option>
    ${options.map(([name, text]) => html`<option value=${name} selected=${name === value}>${text}</option>`)}</select></div>`;
}

function Wallet({ wallet, me }) {
  const columns = [
    { name: "symbol", label: "Coin" },
    { name: "balance", label: "Ledger", align: "end",
      show: (row) => html`<${Amount} value=${row.balance} usd=${row.balanceUSD} />` },
    { name: "onChainBalance", label: "Chain", align: "end", show: (row) => (row.onChainBalance === null
      ? html`<span class="soft">not known</span>` : html`<${Amount} value=${row.onChainBalance} />`) },
    { name: "agrees", label: "Compared", show: (row) => agreement(row) },
    { name: "waits", label: "What goes on from here waits for", show: (row) => row.waits ?? "" },
  ];
  return html`<${Card} title=${`${words(wallet.network)}: ${(ROLES[wallet.walletType] ?? wallet.walletType).toLowerCase()}`}>
    <p><${Code} value=${wallet.address} head=${42} /> <span class="soft">${custody(wallet.custody)}</span></p>
    ${wallet.wallets?.length > 1 && html`<p class="fine">The sums of ${wallet.wallets.length} wallets, each in a slot:
      ${wallet.wallets.map((each) => html` ${each.slot} <${Code} value=${each.address} />`)}</p>`}
    <${Table} label=${`${wallet.network} ${wallet.walletType}`} columns=${columns} rows=${wallet.balances}
      rowKey=${(row) => row.coin} />
    <p class="fine">${wallet.observedAt
      ? html`Chain as of <${Time} at=${wallet.observedAt} ago=${true} />.`
      : "Nobody has looked at the chain yet: a poll does every minute."}</p>
    <${Elsewhere} wallet=${wallet} me=${me} /><//>`;
}

const custody = (kind) =>
  ({ native: "key in KMS", envelope: "key encrypted in the store", none: "its key is not here" })[kind] ?? kind;

function agreement(row) {
  if (row.onChainBalance === null) return "";
  const order = compare(row.onChainBalance, row.balance);
  if (order === 0) return html`<${Status} value="" tone="good" label="Agree" />`;
  return html`<${Status} value="" tone=${order < 0 ? "warn" : "calm"}
    label=${order < 0 ? "Chain has less" : "Chain has more"} />`;
}

/** What the command line alone does with a wallet. */
function Elsewhere({ wallet, me }) {
  const where = `--realm ${realmOf(me)} --network ${wallet.network}`;
  const type = wallet.walletType;
  return html`<details>
    <summary>Replace it${wallet.walletType === "cold" && ", or tell what its owner spent"}: by the command line</summary>
    <p class="fine">No API key may decide where money goes. To put another wallet in its place:</p>
    <${Command}>python -m infra.cli --stage STAGE rotate ${wallet.network} --realm ${realmOf(me)} --type ${type}<//>
    ${wallet.walletType === "cold" && html`<p class="fine">To book what left the cold wallet:</p>
      <${Command}>python -m infra.cli --stage STAGE cold-adjust ${where} --coin COIN --amount AMOUNT --reference
        TXID --reason WHY<//>`}
    <p class="fine">To put keys back from a backup:</p>
    <${Command}>python -m infra.cli --stage STAGE wallet-restore --from FILE<//></details>`;
}

function Register({ networks, me, done, cancel }) {
  const fields = [
    { name: "network", label: "Network", kind: "select", required: true, options: networks },
    { name: "type", label: "What for", kind: "select", required: true,
      options: [["hot", "Hot wallet: pays withdrawals"], ["tokens_collector", "Collector: gathers tokens"],
        ["topup", "Top-up wallet: pays the fees of sweeps"], ["cold", "Cold wallet: stores; its key stays with you"]] },
    { name: "address", label: "Address", kind: "text", required: true, mono: true, when: (values) => values.type === "cold",
      hint: "Of a wallet whose key you keep elsewhere." },
  ];
  const submit = async (values, { key }) => (await post("/addresses/service-wallets", values, { key })).data;
  return html`<p class="soft">
    ${me.type === "test"
      ? "In the sandbox it takes the place of the wallet that is there."
      : "One for each network and purpose. Where there is one, the command line replaces it."}${" "}
      The key is made here, and encrypted at once. Each registration raises an alarm that names your key.</p>
    <${Form} fields=${fields} action="Register" submit=${submit} done=${done} cancel=${cancel} />`;
}

function show(wallet) {
  showOnce({
    title: "The private key of a sandbox wallet", secret: wallet.privateKey, name: "The private key",
    words: html`<p>Whoever has it can move what this wallet holds. Keep it where nobody else reads it.</p>`,
    facts: [["Network", wallet.network], ["What for", ROLES[wallet.type] ?? wallet.type],
      ["Address", html`<code>${wallet.address}</code>`]],
    lost: "The service pays with it all the same: it keeps the key encrypted.",
  });
}

function Made({ wallet }) {
  return html`<${Notice}
    tone="good" title=${`Registered: ${wallet.network}, ${(ROLES[wallet.type] ?? wallet.type).toLowerCase()}`}>
    <p><${Code} value=${wallet.address} head=${42} /></p><//>`;
}
