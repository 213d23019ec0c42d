// One coin: its thresholds and limits, in coin units and in US dollars, and changing them.
import { at, put } from "../app/api.js";
import { amount, fiat } from "../app/format.js";
import { Form } from "../app/form.js";
import { Table } from "../app/list.js";
import { Card, Code, Facts, Failure, Loading, Notice, Page, Status, Time } from "../app/parts.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html, useState } from "../app/ui.js";

/** Each setting with what it means. */
const SETTINGS = [
  ["minDepositAmount", "Smallest deposit", "Less is recorded and flagged, but to the address of an open invoice."],
  ["minValue", "Smallest withdrawal", "The least that one withdrawal may pay."],
  ["maxValue", "Largest withdrawal", "The most that one withdrawal may pay."],
  ["maxValueDaily", "Withdrawals in 24 hours", "The most that may be withdrawn within 24 hours."],
  ["collectThreshold", "Collect from", "The least that is moved from a deposit address to the service wallet."],
  ["approveThreshold", "Collect unasked up to", "A collection of more waits for an operator's word."],
  ["collectServiceToColdThreshold", "To the cold wallet from",
    "The least that is moved from the service wallet to the cold wallet."],
  ["hotCeiling", "Hot wallet: most", "What is above it goes to the cold wallet."],
  ["hotFloor", "Hot wallet: least", "Below it there is an alarm, and withdrawals that would go below it wait."],
];

/** The page of one coin. */
export default function Coin({ params }) {
  const { data, error, loading, again } = useGet(at`/coins/${params.coin}`, { network: params.network }, { every: 120 });
  return html`<${Page} title=${data ? `${data.symbol} on ${data.network.network}` : params.coin}>
    <${Failure} error=${error} again=${again} />
    ${loading && !data && html`<${Loading} />`}
    ${data && html`<${One} coin=${data} again=${again} />`}
  <//>`;
}

function One({ coin, again }) {
  // Kept here: the form is drawn anew for the new settings, and would take with it what it says.
  const [told, tell] = useState(null);
  return html`
    <${Card} title="Coin"><${Facts} rows=${[
      ["Name", coin.name],
      ["Status", html`<${Status} value=${coin.status.toLowerCase()} />`],
      ["Type", coin.type === "NATIVE" ? "The network's own" : "Token"],
      ["Contract", coin.contractAddress && html`<${Code} value=${coin.contractAddress} head=${42} />`],
      ["Decimals", coin.decimals],
      ["Worth", coin.rate
        && html`${fiat(String(coin.rate.usd))} <span class="soft">${coin.rate.source}, <${Time} at=${coin.rate.at}
          ago=${true} /></span> ${coin.rate.stale
            && html`<${Status} value="" tone="warn" label="Too old to price anything" />`}`],
    ]} /><//>
    <${Card} title="Thresholds and limits"><${Limits} coin=${coin} /><//>
    ${can("coins:write")
      && html`<${Card} title="Change">
        <${Change} key=${JSON.stringify(coin.settings)} coin=${coin} again=${again} tell=${tell} />
        ${told && html`<${Notice} tone="good">${told}<//>`}<//>`}`;
}

const none = html`<span class="soft">none</span>`;
const isNone = (value) => value === null || value === undefined || Number(value) === 0;

function Limits({ coin }) {
  const rows = SETTINGS.map(([name, label, meaning]) =>
    ({ name, label, meaning, units: coin.settings[name], usd: coin.settings[`${name}USD`] }));
  const columns = [
    { name: "label", label: "Setting", show: (row) => html`${row.label} <span class="soft">${row.meaning}</span>` },
    { name: "units", label: coin.symbol, align: "end", show: (row) => (isNone(row.units) ? none : amount(String(row.units))) },
    { name: "usd", label: "US dollars", align: "end", show: (row) => (isNone(row.usd) ? none : fiat(String(row.usd))) },
  ];
  return html`<${Table} label="Thresholds and limits" columns=${columns} rows=${rows} rowKey=${(row) => row.name} />
    <p class="fine">Set in ${coin.settings.useUsdLimits ? "US dollars" : "coin units"}; the other one follows from the rate.
      Stays on the hot wallet when it is shared out: ${String(coin.settings.collectPercentageHot)} %.</p>`;
}

function Change({ coin, again, tell }) {
  const { settings } = coin;
  const unit = (name) => (settings.useUsdLimits ? settings[`${name}USD`] : settings[name]);
  const fields = [
    { name: "name", label: "Name", kind: "text", required: true, value: coin.name, most: 100 },
    { name: "status", label: "Status", kind: "select", required: true, value: coin.status,
      options: [["ACTIVE", "Active"], ["INACTIVE", "Inactive: no new invoices and withdrawals"]] },
    { name: "useUsdLimits", label: "Thresholds and limits are in US dollars", kind: "check", value: settings.useUsdLimits,
      hint: "Where you change this, look at every amount below: it counts in the new unit." },
    ...SETTINGS.map(([name, label, meaning]) => ({ name, label, kind: "amount",
      value: isNone(unit(name)) ? "" : String(unit(name)), hint: `${meaning} Empty: none.` })),
    { name: "collectPercentageHot", label: "Stays on the hot wallet (per cent)", kind: "amount",
      value: String(settings.collectPercentageHot) },
  ];
  const submit = async (values) => {
    const body = { network: coin.network.network };
    const flipped = values.useUsdLimits !== settings.useUsdLimits;
    for (const field of fields) {
      const after = values[field.name] ?? "0";
      const before = field.value === "" ? "0" : field.value;
      const named = SETTINGS.some(([name]) => name === field.name);
      if (after !== before || (flipped && named && after !== "0")) body[field.name] = after;
    }
    return (await put(at`/coins/${coin.coin}`, body)).data;
  };
  const done = (result) => {
    tell(`${result.message}. Other parts of the service follow within half a minute.`);
    again();
  };
  return html`<${Form} fields=${fields} action="Save" submit=${submit} done=${done} change=${() => tell(null)} />`;
}

