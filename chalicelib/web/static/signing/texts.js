// The texts that signers sign, made from the records that a page shows: to the byte those of the service
// (chalicelib/domain/withdrawals/approvals.py). A page never signs a text that it was only given.

const ONE_LINE = /^[\x20-\x7e]{1,200}$/;
const CHANGE = /(?:^|: )((?:settings|whitelist)\n[^\n]+\n\d{1,15}\n[^\n]+)$/;

function line(name, value) {
  // A line break in a field would make one text of two records.
  if (typeof value !== "string" || !ONE_LINE.test(value)) throw new Error(`${name} can not stand in a text to sign`);
  return value;
}

/** What a signer signs to accept a withdrawal, as its record shows it. */
export function withdrawalText(record) {
  return ["id", "network", "coin", "amount", "to_address"].map((name) => line(name, record[name])).join("\n");
}

/** What a signer signs to refuse it: a sixth line, so that a refusal can never be handed in as an acceptance. */
export function rejectionText(text) {
  return `${text}\nreject`;
}

/** JSON with sorted names and no blanks. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
}

/** A decimal in the one spelling of the interface, without needless zeros; null where the text is none. */
export function plainAmount(text) {
  const found = /^(0|[1-9][0-9]*)(?:\.([0-9]+))?$/.exec(String(text).trim());
  if (!found) return null;
  const fraction = (found[2] ?? "").replace(/0+$/, "");
  return fraction ? `${found[1]}.${fraction}` : found[1];
}

/** The settings as they stand in the text: those that every merchant has, and the daily limit of refunds where there is one. */
export function guardedSettings(settings) {
  const { enabled, required_signatures, total_signers, threshold_amount, signers } = settings.multisig_config;
  const config = {
    enabled, required_signatures, total_signers, threshold_amount,
    signers: signers.map(({ id, public_key, role }) => ({ id, public_key, role })),
  };
  const limit = settings.refundDailyLimitUSD;
  return {
    whitelist_enforced: settings.whitelist_enforced, multisig_config: config,
    ...(limit && limit !== "0" ? { refundDailyLimitUSD: limit } : {}),
  };
}

function changeText(what, tenant, revision, record) {
  return [what, line("merchant", tenant), String(revision), canonical(record)].join("\n");
}

/** What signers sign to change guarded settings. `revision` is that of the settings that are replaced. */
export function settingsText(tenant, revision, settings) {
  return changeText("settings", tenant, revision, guardedSettings(settings));
}

/** What signers sign to trust an address, or to raise its limits. `revision` is the entry's: 0 for a new one. */
export function whitelistText(tenant, revision, { address, network, daily_limit, monthly_limit }) {
  return changeText("whitelist", tenant, revision, { address, network, daily_limit, monthly_limit });
}

/** `merchant` as GET /merchant answers it: what the texts name it by. */
export function tenantOf(merchant) {
  return `${merchant.id}:${merchant.environment}`;
}

/** The text that a refusal shows at its end; null where it shows none. */
export function shownText(failure) {
  for (const words of [failure?.details?.reason, failure?.message]) {
    const found = typeof words === "string" ? CHANGE.exec(words) : null;
    if (found) return found[1];
  }
  return null;
}

/** The parts of a text about a change: { what, tenant, revision, record }; null where it is none. */
export function readChange(text) {
  const lines = String(text).split("\n");
  if (lines.length !== 4 || !["settings", "whitelist"].includes(lines[0]) || !/^\d{1,15}$/.test(lines[2])) return null;
  try {
    const record = JSON.parse(lines[3]);
    // Another spelling of the same JSON is another text.
    if (record === null || typeof record !== "object" || canonical(record) !== lines[3]) return null;
    return { what: lines[0], tenant: lines[1], revision: Number(lines[2]), record };
  } catch {
    return null;
  }
}
