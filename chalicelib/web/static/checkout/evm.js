// Payments from a wallet of an EVM network (EIP-1193): what the page's payment URI (EIP-681) asks for, and nothing else. The
// wallet is asked for an account, its network, balances, and one plain transfer; never for an approval or another signature.
const NATIVE = /^ethereum:(0x[0-9a-fA-F]{40})@([0-9]{1,20})\?value=([0-9]{1,78})$/;
const TOKEN = /^ethereum:(0x[0-9a-fA-F]{40})@([0-9]{1,20})\/transfer\?address=(0x[0-9a-fA-F]{40})&uint256=([0-9]{1,78})$/;
const ACCOUNT = /^0x[0-9a-fA-F]{40}$/;
const NUMBER = /^0x[0-9a-fA-F]{1,64}$/;
const HASH = /^0x[0-9a-fA-F]{64}$/;
const TRANSFER = "0xa9059cbb"; // transfer(address,uint256)
const BALANCE_OF = "0x70a08231"; // balanceOf(address)
const UNKNOWN_CHAIN = 4902; // EIP-3326

/** What went wrong, by the key of its words. `values` are for their places. */
export class Problem extends Error {
  constructor(key, values = {}) {
    super(key);
    this.key = key;
    this.values = values;
  }
}

/** What a URI asks for: `{ chainId, contract, recipient, units }`, with BigInts; null where it is none of these networks. */
export function asked(uri) {
  const native = NATIVE.exec(uri);
  if (native) return { recipient: native[1], chainId: BigInt(native[2]), contract: null, units: BigInt(native[3]) };
  const token = TOKEN.exec(uri);
  if (!token) return null;
  return { contract: token[1], chainId: BigInt(token[2]), recipient: token[3], units: BigInt(token[4]) };
}

const hex = (number) => `0x${number.toString(16)}`;
const word = (digits) => digits.padStart(64, "0");
const wordOf = (address) => word(address.slice(2).toLowerCase());

/** The transaction that makes a payment from `account`. Fees and nonce are the wallet's. */
export function transaction(payment, account) {
  const common = { from: account, chainId: hex(payment.chainId) };
  if (payment.contract === null) return { ...common, to: payment.recipient, value: hex(payment.units) };
  const data = TRANSFER + wordOf(payment.recipient) + word(payment.units.toString(16));
  return { ...common, to: payment.contract, value: "0x0", data };
}

/** Units as a plain decimal of a coin with so many decimals. */
export function decimal(units, decimals) {
  const digits = units.toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const part = digits.slice(digits.length - decimals).replace(/0+$/, "");
  return part ? `${whole}.${part}` : whole;
}

/** The code of a wallet's error; some wallets wrap the one that counts. */
export const codeOf = (error) => error?.data?.originalError?.code ?? error?.code;

function number(answer) {
  if (typeof answer !== "string" || !NUMBER.test(answer)) throw new Problem("unclear");
  return BigInt(answer);
}

/** The account that the payer lets the page see. */
export async function connect(provider) {
  const accounts = await provider.request({ method: "eth_requestAccounts" });
  const account = Array.isArray(accounts) ? accounts[0] : null;
  if (typeof account !== "string" || !ACCOUNT.test(account)) throw new Problem("unclear");
  return account;
}

/** Whether the wallet is on the network of the payment. */
export async function isThere(provider, payment) {
  return number(await provider.request({ method: "eth_chainId" })) === payment.chainId;
}

/** Ask the wallet to go to the network; one that it does not know is added where its public data are known (EIP-3085). */
export async function switchTo(provider, payment, chain) {
  const params = [{ chainId: hex(payment.chainId) }];
  try {
    await provider.request({ method: "wallet_switchEthereumChain", params });
  } catch (error) {
    if (codeOf(error) !== UNKNOWN_CHAIN) throw error;
    if (!chain) throw new Problem("noNetwork");
    await provider.request({ method: "wallet_addEthereumChain", params: [chain] });
    if (!(await isThere(provider, payment))) await provider.request({ method: "wallet_switchEthereumChain", params });
  }
  // What a wallet says of itself is asked once more: on another network the money would not arrive.
  if (!(await isThere(provider, payment))) throw new Problem("wrongNetwork");
}

/** Raises Problem where the account has too little of the coin, or nothing for the fee. What can not be read is left out. */
export async function demandFunds(provider, payment, account, decimals) {
  let coins;
  let have;
  try {
    coins = number(await provider.request({ method: "eth_getBalance", params: [account, "latest"] }));
    have = payment.contract === null ? coins : await tokens(provider, payment.contract, account);
  } catch {
    return;
  }
  if (have < payment.units) throw new Problem("wrongCoin", { have: decimal(have, decimals) });
  if (coins === 0n || (payment.contract === null && coins === payment.units)) throw new Problem("noFee");
}

async function tokens(provider, contract, account) {
  const call = { to: contract, data: BALANCE_OF + wordOf(account) };
  const answer = await provider.request({ method: "eth_call", params: [call, "latest"] });
  // Nothing at all is answered where there is no such contract: another network that says it is this one.
  return answer === "0x" ? 0n : number(answer);
}

/** Hand the payment to the wallet, which asks the payer; the transaction's hash. */
export async function pay(provider, payment, account) {
  if (!(await isThere(provider, payment))) throw new Problem("wrongNetwork");
  const hash = await provider.request({ method: "eth_sendTransaction", params: [transaction(payment, account)] });
  if (typeof hash !== "string" || !HASH.test(hash)) throw new Problem("unsure");
  return hash;
}
