// The columns of exported lists: names as in the API, money as decimal strings, times in UTC, and the fiat value at payment
// with its source.
import { sum } from "./format.js";

const field = (name) => ({ label: name, value: (row) => row[name] });
const fields = (...names) => names.map(field);
const json = (value) => (value && Object.keys(value).length > 0 ? JSON.stringify(value) : "");
const joined = (values) => [...new Set(values)].filter(Boolean).join(" ");

/** Value, currency and source of one payment; `of(row)` has them, or is null where nobody knew a rate. */
const valued = (of) => [
  { label: "fiatValue", value: (row) => of(row)?.amount },
  { label: "fiatValueCurrency", value: (row) => of(row)?.currency },
  { label: "fiatValueSource", value: (row) => of(row)?.source },
];

/**
 * The value of an invoice's payments when they were made. One invoice is valued in one currency, so that they add up; `unknown`
 * counts the payments that nobody knew a rate for.
 */
export function paidValue(invoice) {
  const values = (invoice.transactions ?? []).map((payment) => payment.fiatValue ?? null);
  const known = values.filter(Boolean);
  const currencies = new Set(known.map((value) => value.currency));
  const alike = currencies.size === 1;
  return {
    amount: alike ? fixed(sum(...known.map((value) => value.amount)), known[0].amount) : null,
    currency: alike ? known[0].currency : null,
    source: joined(known.map((value) => value.source)),
    unknown: values.length - (alike ? known.length : 0),
  };
}

/** A sum with as many decimals as its parts have: 12.5 of 2.50 and 10.00 is 12.50. */
function fixed(total, like) {
  const decimals = (like.split(".")[1] ?? "").length;
  const [whole, part = ""] = total.split(".");
  return decimals === 0 ? total : `${whole}.${part.padEnd(decimals, "0")}`;
}

export const INVOICES = [
  ...fields("id", "externalId", "status", "createdAt", "expiresAt", "description", "currency", "network", "amount", "received"),
  ...fields("unconfirmed", "missing", "overpaid", "shortfall", "paidPercent", "fiatAmount", "fiatCurrency"),
  { label: "rate", value: (row) => row.rate?.value },
  { label: "rateCurrency", value: (row) => row.rate?.fiat },
  { label: "rateSource", value: (row) => row.rate?.source },
  ...valued(paidValue),
  { label: "paymentsWithoutFiatValue", value: (row) => paidValue(row).unknown },
  { label: "payments", value: (row) => (row.transactions ?? []).length },
  { label: "transactionHashes", value: (row) => joined((row.transactions ?? []).map((payment) => payment.hash)) },
  ...fields("address", "paymentLinkId", "checkoutUrl"),
  { label: "metadata", value: (row) => json(row.metadata) },
];

export const TRANSACTIONS = [
  ...fields("id", "hash", "type", "status", "createdAt", "confirmedAt", "network", "coin", "amount", "fee"),
  ...valued((row) => row.fiatValue),
  ...fields("from", "to", "contractAddress", "blockNumber", "confirmations", "invoiceId", "withdrawalId"),
  { label: "flags", value: (row) => joined(row.flags ?? []) },
];

export const WITHDRAWALS = [
  ...fields("id", "status", "created_at", "confirmed_at", "network", "coin", "amount", "fee", "fee_coin", "fee_charged"),
  ...valued((row) => row.fiat_value),
  ...fields("to_address", "from_address", "transaction_hash", "block_number", "confirmations", "priority", "batch_id"),
  ...fields("pending_reason", "failure_reason"),
  { label: "metadata", value: (row) => json(row.metadata) },
];
