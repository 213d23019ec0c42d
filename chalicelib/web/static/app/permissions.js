// Permissions in plain words: what a key may do with each.
export const PERMISSIONS = [
  ["addresses:read", "See addresses and wallets"],
  ["addresses:create", "Make addresses to receive on"],
  ["addresses:write", "Rename and archive addresses"],
  ["balances:read", "See balances"],
  ["coins:read", "See coins and their settings"],
  ["coins:write", "Change coins (operator keys alone)"],
  ["events:read", "See events"],
  ["invoices:read", "See invoices and payment links"],
  ["invoices:create", "Make invoices and payment links"],
  ["invoices:write", "Change and cancel invoices, and their settings"],
  ["keys:read", "See API keys, and who did what"],
  ["keys:write", "Make, change and revoke API keys"],
  ["merchant:read", "See the merchant's settings"],
  ["merchant:write", "Change the merchant's settings"],
  ["networks:read", "See networks"],
  ["networks:write", "Change networks (operator keys alone)"],
  ["sandbox:write", "Use the sandbox: pay, mine, move the clock"],
  ["transactions:read", "See transactions"],
  ["webhooks:read", "See webhooks and their deliveries"],
  ["webhooks:write", "Make and change webhooks, and send again"],
  ["whitelist:read", "See the whitelist"],
  ["whitelist:write", "Change the whitelist"],
  ["withdrawals:read", "See withdrawals, refunds and claim links"],
  ["withdrawals:create", "Send money: withdrawals, refunds and claim links"],
  ["withdrawals:write", "Cancel, approve and reject withdrawals"],
];

const WORDS = new Map(PERMISSIONS);

/** A permission in plain words; its own name where there are none. */
export const inWords = (permission) => WORDS.get(permission) ?? permission;
