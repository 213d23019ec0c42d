// Payments from TronLink and wallets like it. Its own script in a page asks a node to build a transaction, which the page's
// policy forbids: the service builds it, the wallet signs, and the service sends it.
import { Problem } from "./evm.js";

const ADDRESS = /^T[1-9A-HJ-NP-Za-km-z]{33}$/;
const SIGNATURE = /^(0x)?[0-9a-fA-F]{130}$/;
const DECLINED = 4001;
const TRIES = 3;
const PAUSE_MS = 4000;

const webOf = (wallet) => wallet.tronWeb || window.tronLink?.tronWeb || window.tronWeb;

/** The account that the payer lets the page see. */
export async function connect(wallet) {
  let account = null;
  if (wallet === window.tronLink) {
    // The older form answers with a code in place of accounts.
    const answer = await wallet.request({ method: "tron_requestAccounts" });
    if (answer?.code === DECLINED) throw Object.assign(new Error("declined"), { code: DECLINED });
    if (answer?.code === 4000) throw new Problem("waiting");
  } else {
    const accounts = await wallet.request({ method: "eth_requestAccounts" });
    account = Array.isArray(accounts) ? accounts[0] : null;
  }
  account = account || webOf(wallet)?.defaultAddress?.base58;
  if (typeof account !== "string" || !ADDRESS.test(account)) throw new Problem("locked");
  return account;
}

/** Whether the wallet is on the chain with this id (TIP-1193); also where it does not tell, or any chain will do. */
export async function isThere(wallet, chainId) {
  if (!chainId || wallet === window.tronLink) return true;
  try {
    return String(await wallet.request({ method: "eth_chainId" })).toLowerCase() === chainId;
  } catch {
    return true;
  }
}

/** Ask the wallet to go to the chain. */
export async function switchTo(wallet, chainId) {
  await wallet.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] });
  if (!(await isThere(wallet, chainId))) throw new Problem("wrongNetwork");
}

async function ask(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(path, { method, headers, body: JSON.stringify(body), credentials: "omit", redirect: "error" });
  const said = await answer.json().catch(() => ({}));
  if (answer.ok) return said;
  const refusal = said.error ?? {};
  const field = refusal.details?.field;
  if (answer.status === 400 && field === "from") throw new Problem("tooLittle");
  if (answer.status === 400 && method === "PUT" && field === "network") throw new Error("no answer");
  if (answer.status === 400) throw new Problem("refused", { reason: String(refusal.message ?? "").slice(0, 300) });
  if (answer.status === 429) throw new Problem("tooOften");
  throw new Error(String(answer.status));
}

/** The transaction that pays the invoice from `account`, signed: `{ raw_data_hex, signature }`. `path` is the service's. */
export async function sign(wallet, path, account) {
  const { transaction } = await ask("POST", path, { from: account });
  const signed = await webOf(wallet).trx.sign(transaction);
  const signature = signed?.signature?.[0];
  if (typeof signature !== "string" || !SIGNATURE.test(signature)) throw new Problem("unclear");
  return { raw_data_hex: signed.raw_data_hex ?? transaction.raw_data_hex, signature };
}

/** Send it. The same transaction may be sent again, and is where no answer comes: it is never taken twice. Its id. */
export async function send(path, signed) {
  const { raw_data_hex, signature } = signed;
  for (let left = TRIES; ; left -= 1) {
    try {
      return (await ask("PUT", path, { raw_data_hex, signature })).txId;
    } catch (error) {
      if (error instanceof Problem) throw error;
      if (left <= 1) throw new Problem("notSent");
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}
