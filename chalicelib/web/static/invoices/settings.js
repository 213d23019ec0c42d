// What new invoices obey: time to pay, coins, what is forgiven.
import { put } from "../app/api.js";
import { Form } from "../app/form.js";
import { duration } from "../app/format.js";
import { Card, Facts, Failure, Loading, Notice, Page } from "../app/parts.js";
import { can } from "../app/session.js";
import { useGet } from "../app/use.js";
import { html } from "../app/ui.js";
import { useCoins } from "../catalogue/coins.js";
import { unnested } from "../app/nested_errors.js";
import { LATE } from "./words.js";
import { DEFAULT_LOCK, leastText, settingFields, settingsOf } from "./settings_fields.js";

const save = (settings) => unnested("settings", () => put("/invoices/configureSettings", { settings }));

/** The page "Invoices" of the settings. */
export default function InvoiceSettings() {
  const { data, error, again, put: show } = useGet("/invoices/configureSettings");
  const coins = useCoins();
  const settings = data?.settings;
  const ready = settings && (coins.ready || coins.error);
  return html`<${Page} title="Invoice settings" lead="They count for new invoices, within 30 seconds.">
    <${Failure} error=${error} again=${again} />
    ${!error && !ready && html`<${Loading} />`}
    ${ready && (can("invoices:write")
      ? html`<${Card}><${Form} fields=${settingFields(settings, coins)} action="Save" say="Saved. New invoices obey this."
          submit=${async (values) => (await save(settingsOf(values, settings))).data} done=${show} /><//>`
      : html`<${ReadOnly} settings=${settings} />`)}
  <//>`;
}

function ReadOnly({ settings }) {
  return html`<${Notice}>This key may look, and not change them.<//><${Card}><${Facts} rows=${[
    ["An invoice expires after", duration(settings.defaultExpirationTime)],
    ["A rate is locked for", duration(settings.rateLockSeconds ?? DEFAULT_LOCK)],
    ["Completed at once up to", settings.autoConfirmThreshold ? `$${settings.autoConfirmThreshold}` : "Never"],
    ["Accepted coins", settings.supportedCurrencies.join(", ").toUpperCase() || "All"],
    ["Least amounts", leastText(settings.minimumAmounts).join(", ") || "None"],
    ["Forgiven shortfall", `${settings.tolerancePercent ?? 0} %`],
    ["Late payments", LATE.find(([name]) => name === (settings.latePayments ?? "manual"))?.[1]],
  ]} /><//>`;
}
