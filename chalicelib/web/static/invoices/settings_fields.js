// The fields of the invoice settings, and what the API takes for them.
import { termFields } from "./words.js";

export const DEFAULT_LOCK = 900;

/** "btc 0.0001" in each line. */
export const leastText = (least) => Object.entries(least ?? {}).map(([coin, amount]) => `${coin} ${amount}`);

/** The opposite. Raises RangeError naming the line that is none. */
export function leastOf(lines) {
  const found = {};
  for (const line of lines ?? []) {
    const match = /^([A-Za-z0-9._-]{1,32})\s*[:= ]\s*(\d{1,38}(?:\.\d{1,38})?)$/.exec(line);
    if (!match) throw new RangeError(`"${line}" is no coin with an amount, such as btc 0.0001`);
    found[match[1].toLowerCase()] = match[2];
  }
  return found;
}

/** The form's fields with the settings of now. */
export function settingFields(settings, coins) {
  const supported = settings.supportedCurrencies ?? [];
  const only = coins.slugs.length > 0
    ? { kind: "checks", options: [...new Set([...coins.slugs, ...supported])].map((slug) => [slug, slug.toUpperCase()]) }
    : { kind: "list", hint: "One in each line." };
  const terms = termFields({ ...settings, latePayments: settings.latePayments ?? "manual",
    tolerancePercent: settings.tolerancePercent ?? 0 });
  return [
    {
      name: "minutes", label: "Minutes until an invoice expires", kind: "number", required: true,
      value: settings.defaultExpirationTime / 60,
      hint: "Each invoice may say otherwise.",
    },
    {
      name: "lockMinutes", label: "Minutes for which a payer's rate is locked", kind: "number", required: true,
      value: (settings.rateLockSeconds ?? DEFAULT_LOCK) / 60,
      hint: "Where the payer chooses the coin. Then a new rate is shown.",
    },
    {
      name: "autoConfirmThreshold", label: "Complete at once up to so many US dollars", kind: "amount", required: true,
      value: settings.autoConfirmThreshold,
      hint: "A payment in a block completes such a small invoice before it is confirmed. 0: never.",
    },
    { name: "limited", label: "Accept certain coins alone", kind: "check", value: supported.length > 0 },
    { name: "supportedCurrencies", label: "Accepted coins", required: true, value: supported,
      when: (values) => values.limited, ...only },
    { name: "minimumAmounts", label: "Least amounts", kind: "list", value: leastText(settings.minimumAmounts),
      hint: "One in each line: btc 0.0001" },
    ...terms.map((field) => (field.name === "latePayments" ? { ...field, required: true } : field)),
  ];
}

/** What is sent: everything that the form shows. */
export function settingsOf(values, before) {
  const settings = {
    defaultExpirationTime: Math.round(values.minutes * 60),
    autoConfirmThreshold: values.autoConfirmThreshold,
    supportedCurrencies: values.limited ? values.supportedCurrencies : [],
    minimumAmounts: leastOf(values.minimumAmounts),
    tolerancePercent: values.tolerancePercent ?? "0",
    toleranceMaxUSD: values.toleranceMaxUSD ?? null,
    latePayments: values.latePayments,
  };
  if (values.latePaymentsPercent !== undefined) settings.latePaymentsPercent = values.latePaymentsPercent;
  const lock = Math.round(values.lockMinutes * 60);
  if (lock !== (before.rateLockSeconds ?? DEFAULT_LOCK)) settings.rateLockSeconds = lock;
  return settings;
}
