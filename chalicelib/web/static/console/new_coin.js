// Registering a coin: the contract is read first, and what it says is looked at before anything is stored.
import { newKey, post, put } from "../app/api.js";
import { Form } from "../app/form.js";
import { Button, Card, Code, Facts, Failure, Loading, Notice, Page } from "../app/parts.js";
import { Link } from "../app/router.js";
import { can, isTest } from "../app/session.js";
import { html, useRef, useState } from "../app/ui.js";
import { useNetworks } from "./shared.js";

const TOKENLESS = new Set(["bitcoin", "litecoin"]);

/** The page "Register a coin". */
export default function NewCoin({ query }) {
  const [looked, look] = useState(null);
  const [made, make] = useState(null);
  const [token, offer] = useState(null);
  const networks = useNetworks();
  return html`<${Page} title="Register a coin"
    lead="A token by its contract, or a network's own coin. What arrives from then on is credited.">
    ${made ? html`<${Made} coin=${made} again=${() => { look(null); make(null); }} />`
      : looked ? html`<${Check} looked=${looked} done=${make} back=${() => look(null)} />`
        : networks.length === 0 ? html`<${Loading} />`
          : html`<${Contract} key=${token?.contractAddress ?? ""} networks=${networks} query=${token ?? query} done=${look} />
          ${isTest() && can("sandbox:write") && html`<${SandboxToken} networks=${networks} token=${token} done=${offer} />`}`}
  <//>`;
}

function Contract({ networks, query, done }) {
  const fields = [
    { name: "network", label: "Network", kind: "select", required: true, options: networks, value: query.network },
    { name: "contractAddress", label: "Contract", kind: "text", required: true, mono: true,
      value: query.contract ?? query.contractAddress, when: (values) => !TOKENLESS.has(values.network),
      hint: "The token's contract address. Copy it from the issuer's own page: everybody can make a token with a well-known "
        + "name." },
  ];
  const read = async (values) =>
    ({ ...values, ...(TOKENLESS.has(values.network) ? {} : (await put("/coins/precreate-token", values)).data) });
  return html`<${Card} title="1. Which token?"><${Form} fields=${fields} action="Read the contract" submit=${read}
    done=${done} />
<//>`;
}

/** No contract at hand: a simulated network gets one, as an issuer would make it. */
function SandboxToken({ networks, token, done }) {
  const fields = [
    { name: "network", label: "Network of the token", kind: "select", required: true,
      options: networks.filter(([slug]) => !TOKENLESS.has(slug)) },
    { name: "symbol", label: "Symbol", kind: "text", required: true, most: 11, example: "SHOE" },
    { name: "name", label: "Name", kind: "text", required: true, most: 50, example: "Shoe Coin" },
    { name: "decimals", label: "Decimals", kind: "number", required: true, value: "6" },
  ];
  const issue = async (values, { key }) => (await post("/sandbox/tokens", values, { key })).data;
  if (token) return html`<${Notice}
    tone="good" title=${`${token.symbol} is issued on ${token.network}`}>
      <p>Its contract is filled in above: read it next.</p><//>`;
  return html`<${Card} title="No contract at hand?">
    <p class="soft">This is the sandbox: issue a token of your own, and register that.</p>
    <${Form} fields=${fields} action="Issue a sandbox token" submit=${issue} done=${done} /><//>`;
}

function Check({ looked, done, back }) {
  const [error, fail] = useState(null);
  const [busy, work] = useState(false);
  const key = useRef(newKey());
  const native = !looked.contractAddress;
  const register = async () => {
    work(true);
    fail(null);
    try {
      const body = native ? { network: looked.network } : { network: looked.network, contractAddress: looked.contractAddress };
      done((await post("/coins", body, { key: key.current })).data);
    } catch (failure) {
      fail(failure);
      work(false);
    }
  };
  return html`<${Card} title="2. Is this the one?">
    <${Facts} rows=${[
      ["Network", looked.network],
      ["Contract", looked.contractAddress && html`<${Code} value=${looked.contractAddress} head=${42} />`],
      ["Symbol", native ? "the network's own coin" : looked.symbol],
      ["Name", looked.name],
      ["Decimals", looked.decimals],
      ["Will be called", looked.coin && html`<code>${looked.coin}</code>`],
    ]} />
    <${Notice} tone="warn" title="Compare the contract with the issuer's own page">
      <p>Symbol and name prove nothing: they are what the contract says of itself. A coin that is registered can be made
        inactive, and is never removed.</p><//>
    <${Failure} error=${error} />
    <div class="actions"><${Button} busy=${busy} onClick=${register}>Register it<//><${Button} tone="quiet"
      onClick=${back}>Another one<//></div><//>`;
}

function Made({ coin, again }) {
  return html`<${Notice} tone="good" title=${coin.message}
    actions=${html`<${Link} to=${`/coins/${coin.network}/${coin.coin}`} class="button">Its limits and thresholds<//>
    <${Button} tone="quiet"
      onClick=${again}>Register another<//>`}><p>Other parts of the service know it within half a minute.</p><//>`;
}
