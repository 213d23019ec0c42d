/*
 * bcoin in regtest, answering as Bitcoin Core does. Usage: node bcoin.js <folder with node_modules> <port> <blocks>; the RPC's
 * password in $BCOIN_PASSWORD. Everything is in memory. Until the first blocks are mined it answers error -28, as Core at its start.
 *
 * What bcoin 1.0.2 does otherwise is put right below, each with its reason, and the wallet calls that tests need are added:
 * getnewaddress, sendtoaddress, signrawtransactionwithwallet, generateblock, and (Core has no such) evictmempool.
 */

'use strict';

process.env.NODE_BACKEND = 'js'; // its native modules are not compiled

const path = require('path');
const crypto = require('crypto');
const {createRequire} = require('module');

const [folder, port, blocks] = process.argv.slice(2);
const load = createRequire(path.join(path.resolve(folder), 'launcher.js'));

// Core's regtest, chainparams.cpp; bcoin has spellings of its own. To be set before anything asks for the network.
const {regtest} = load('bcoin/lib/protocol/networks');
Object.assign(regtest.addressPrefix, {pubkeyhash: 0x6f, scripthash: 0xc4, bech32: 'bcrt'});
Object.assign(regtest.keyPrefix, {privkey: 0xef});

const FullNode = load('bcoin/lib/node/fullnode');
const Address = load('bcoin/lib/primitives/address');
const KeyRing = load('bcoin/lib/primitives/keyring');
const MTX = load('bcoin/lib/primitives/mtx');
const TX = load('bcoin/lib/primitives/tx');
const Amount = load('bcoin/lib/btc/amount');
const util = load('bcoin/lib/utils/util');
const {RPCError} = load('bweb').RPC;

const node = new FullNode({
  network: 'regtest',
  memory: true,
  listen: false,
  indexTx: true,
  httpHost: '127.0.0.1',
  httpPort: Number(port),
  apiKey: process.env.BCOIN_PASSWORD,
  rejectAbsurdFees: false,
  limitFree: false
});
const {chain, mempool, miner, rpc} = node;
mempool.options.relayPriority = false; // Core has no priorities; the least fee is checked below

const MATURITY = 100;
const FEE_RATE = 10000; // of the wallet's own payments, satoshi per 1000 bytes
const MIN_RELAY = 1; // satoshi per virtual byte

let ready = false;

/* The wallet: keys that follow from their number, and the outputs that were ever seen to pay them. */

const rings = new Map(); // output script (hex) -> key
const outputs = new Map(); // txid/index -> {hash, index}

function newRing() {
  const secret = crypto.createHash('sha256').update(`customer ${rings.size}`).digest();
  const ring = KeyRing.fromPrivate(secret, true);
  ring.witness = true;
  rings.set(ring.getProgram().toRaw().toString('hex'), ring);
  return ring;
}

function see(tx) {
  const hash = tx.hash('hex');
  for (const [index, output] of tx.outputs.entries()) {
    if (rings.has(output.script.toRaw().toString('hex')))
      outputs.set(`${hash}/${index}`, {hash, index});
  }
}

chain.on('connect', (entry, block) => block.txs.forEach(see));
mempool.on('tx', see);

async function spendable({hash, index}) {
  if (mempool.isSpent(hash, index))
    return null;
  const coin = mempool.getCoin(hash, index) || await chain.getCoin(hash, index);
  if (!coin || (coin.coinbase && chain.height + 1 - coin.height < MATURITY))
    return null;
  return coin;
}

async function pay(address, value) {
  const mtx = new MTX();
  mtx.addOutput(address, value);
  const coins = [];
  let sum = 0;
  // The oldest first: they are in blocks, and a chain of payments that all wait is never long.
  for (const known of outputs.values()) {
    if (sum > value + 1e6)
      break;
    const coin = await spendable(known);
    if (coin) {
      coins.push(coin);
      sum += coin.value;
    }
  }
  await mtx.fund(coins, {rate: FEE_RATE, changeAddress: newRing().getAddress(), height: chain.height, coinbaseMaturity: MATURITY});
  for (const input of mtx.inputs)
    input.sequence = 0xfffffffd;
  sign(mtx);
  return mtx.toTX();
}

function sign(mtx) {
  for (const ring of rings.values())
    mtx.sign(ring);
}

/* What Core answers. Codes: src/rpc/protocol.h. */

const calls = rpc.calls;
const theirs = Object.assign({}, calls);

function fail(code, message) {
  throw new RPCError(code, message);
}

async function accept(tx) {
  const hash = tx.hash('hex');
  if (mempool.hasEntry(hash))
    return;
  if (tx.inputs.some(({prevout}) => mempool.isSpent(prevout.hash, prevout.index)))
    fail(-26, 'txn-mempool-conflict'); // there is no replacement here
  if (!await chain.hasCoins(tx)) {
    const view = await mempool.getCoinView(tx);
    if (tx.inputs.every(({prevout}) => view.getOutput(prevout))) {
      const fee = tx.getFee(view);
      const least = tx.getVirtualSize() * MIN_RELAY;
      if (fee >= 0 && fee < least)
        fail(-26, `min relay fee not met, ${fee} < ${least}`);
    }
  }
  let missing;
  try {
    missing = await mempool.addTX(tx);
  } catch (error) {
    if (error.reason === 'txn-already-known')
      fail(-27, 'Transaction already in block chain');
    if (error.type === 'VerifyError')
      fail(-26, error.reason);
    throw error;
  }
  if (missing) {
    mempool.removeOrphan(hash);
    fail(-25, 'bad-txns-inputs-missingorspent');
  }
}

function parse(hex) {
  try {
    return TX.fromRaw(Buffer.from(hex, 'hex'));
  } catch (error) {
    return fail(-22, 'TX decode failed');
  }
}

function addressOf(text) {
  try {
    return Address.fromString(text, node.network);
  } catch (error) {
    return fail(-5, 'Invalid address');
  }
}

const stale = new Map(); // hash -> {entry, block}: what a reorganisation took out of the chain, and Core still knows

function known(hash) {
  if (typeof hash !== 'string' || !/^[0-9a-f]{64}$/.test(hash))
    fail(-8, `blockhash must be of length 64 (not ${String(hash).length})`);
  return util.revHex(hash);
}

function plain(json, isStale) {
  if (isStale)
    json.confirmations = -1;
  for (const name of ['previousblockhash', 'nextblockhash']) {
    if (json[name] == null || (isStale && name === 'nextblockhash'))
      delete json[name];
  }
  return json;
}

const TYPES = {
  PUBKEY: 'pubkey', PUBKEYHASH: 'pubkeyhash', SCRIPTHASH: 'scripthash', MULTISIG: 'multisig', NULLDATA: 'nulldata',
  WITNESSPUBKEYHASH: 'witness_v0_keyhash', WITNESSSCRIPTHASH: 'witness_v0_scripthash', NONSTANDARD: 'nonstandard',
  WITNESSMALFORMED: 'nonstandard'
};

// As Core writes it since version 22: one `address`. bcoin knows no bech32m, so newer witness versions have none.
rpc.scriptToJSON = function scriptToJSON(script) {
  const raw = script.toRaw();
  const program = script.isProgram() && raw[0] !== 0;
  const type = program ? 'witness_unknown' : TYPES[Object.getPrototypeOf(rpc).scriptToJSON.call(rpc, script, false).type.toUpperCase()];
  const json = {asm: script.toASM(), hex: raw.toString('hex'), type: type || 'nonstandard'};
  const address = script.isPubkey() || program ? null : script.getAddress();
  if (address)
    json.address = address.toString(node.network);
  return json;
};

Object.assign(calls, {
  async getblock([hash, verbosity = 1]) {
    const key = known(hash);
    const gone = stale.get(key);
    const entry = gone ? gone.entry : await chain.getEntry(key);
    if (!entry)
      fail(-5, 'Block not found');
    const block = gone ? gone.block : await chain.getBlock(key);
    if (Number(verbosity) === 0)
      return block.toRaw().toString('hex');
    const json = await rpc.blockToJSON(entry, block, Number(verbosity) > 1);
    // It leaves out the nonce, and writes the target's bits as a number.
    Object.assign(json, {nTx: block.txs.length, nonce: entry.nonce, bits: entry.bits.toString(16).padStart(8, '0')});
    if (Number(verbosity) > 1)
      block.txs.forEach((tx, n) => Object.assign(json.tx[n], {weight: tx.getWeight(), hex: tx.toRaw().toString('hex')}));
    return plain(json, Boolean(gone));
  },

  async getblockheader([hash, verbose = true]) {
    const key = known(hash);
    const gone = stale.get(key);
    const entry = gone ? gone.entry : await chain.getEntry(key);
    if (!entry)
      fail(-5, 'Block not found');
    return verbose ? plain(await rpc.headerToJSON(entry), Boolean(gone)) : entry.toRaw().toString('hex', 0, 80);
  },

  async getblockhash([height]) {
    if (!Number.isInteger(height) || height < 0 || height > chain.height)
      fail(-8, 'Block height out of range');
    return util.revHex(await chain.getHash(height));
  },

  async getrawtransaction([txid, verbose = false]) {
    const meta = await node.getMeta(known(txid));
    // As Core with its index: what was in a stale block only is answered, with that block and no confirmations.
    for (const {entry, block} of meta ? [] : stale.values()) {
      const tx = block.txs.slice(1).find((other) => other.txid() === txid);
      if (tx) {
        const hex = tx.toRaw().toString('hex');
        const json = rpc.txToJSON(tx, null);
        return verbose ? {...json, hex, blockhash: entry.rhash(), confirmations: 0, time: undefined, blocktime: undefined} : hex;
      }
    }
    if (!meta)
      fail(-5, 'No such mempool or blockchain transaction. Use gettransaction for wallet transactions.');
    const hex = meta.tx.toRaw().toString('hex');
    if (!verbose)
      return hex;
    const entry = meta.block ? await chain.getEntry(meta.block) : null;
    const json = Object.assign(rpc.txToJSON(meta.tx, entry), {hex, weight: meta.tx.getWeight()});
    if (!entry) {
      for (const name of ['blockhash', 'confirmations', 'time', 'blocktime'])
        delete json[name];
    }
    return json;
  },

  // It does not look at what spends an output in the mempool.
  async gettxout([txid, index, withMempool = true]) {
    if (withMempool && mempool.isSpent(known(txid), index))
      return null;
    return theirs.gettxout.call(rpc, [txid, index, withMempool], false);
  },

  async getmempoolentry([txid]) {
    const entry = mempool.getEntry(known(txid));
    if (!entry)
      fail(-5, 'Transaction not in mempool');
    const fee = Amount.btc(entry.fee, true);
    return {
      vsize: entry.tx.getVirtualSize(), weight: entry.tx.getWeight(), time: entry.time, height: entry.height,
      fees: {base: fee, modified: fee}, depends: mempool.getDepends(entry.tx).map(util.revHex),
      'bip125-replaceable': false
    };
  },

  // It answers a txid even for what it refuses.
  async sendrawtransaction([hex]) {
    const tx = parse(hex);
    await accept(tx);
    return tx.txid();
  },

  // bcoin says -1 where it does not know.
  async estimatesmartfee([target]) {
    const rate = node.fees.estimateFee(target, true);
    return rate > 0 ? {feerate: Amount.btc(rate, true), blocks: target}
      : {errors: ['Insufficient data or no feerate found'], blocks: target};
  },

  // It forgets what was in those blocks, and its mempool is out of step afterwards.
  async invalidateblock([hash]) {
    const key = known(hash);
    const first = await chain.getEntry(key);
    if (!first || !await chain.isMainChain(first))
      fail(-5, 'Block not found');
    const waiting = [];
    for (let height = first.height; height <= chain.height; height++) {
      const entry = await chain.getEntry(height);
      const block = await chain.getBlock(entry.hash);
      stale.set(entry.hash, {entry, block});
      waiting.push(...block.txs.slice(1));
    }
    waiting.push(...mempool.map.values());
    await chain.invalidate(key);
    await mempool.reset();
    for (const item of waiting) {
      try {
        await accept(item.tx || item);
      } catch (error) {
        if (error.type !== 'RPCError')
          throw error; // otherwise it is one that spends a coinbase which is no more
      }
    }
    return null;
  },

  async generateblock([output, transactions]) {
    const job = await miner.cpu.createJob(chain.tip, addressOf(output));
    const attempt = job.attempt;
    attempt.items = [];
    attempt.fees = 0;
    attempt.weight = miner.options.reservedWeight;
    attempt.sigops = miner.options.reservedSigops;
    const earlier = new Map();
    for (const hex of transactions) {
      const entry = hex.length === 64 ? mempool.getEntry(known(hex)) : null;
      const tx = entry ? entry.tx : parse(hex);
      const view = await chain.getCoinView(tx);
      for (const {prevout} of tx.inputs) {
        if (earlier.has(prevout.hash))
          view.addTX(earlier.get(prevout.hash), chain.height + 1);
      }
      earlier.set(tx.hash('hex'), tx);
      attempt.pushTX(tx, view);
    }
    job.refresh();
    let entry;
    try {
      entry = await chain.add(await miner.cpu.mineAsync(job));
    } catch (error) {
      if (error.type === 'VerifyError')
        fail(-25, `TestBlockValidity failed: ${error.reason}`);
      throw error;
    }
    return {hash: entry.rhash()};
  },

  async getnewaddress() {
    return newRing().getAddress().toString(node.network);
  },

  async sendtoaddress([address, amount]) {
    const tx = await pay(addressOf(address), Amount.value(Number(amount).toFixed(8)));
    await accept(tx);
    return tx.txid();
  },

  async signrawtransactionwithwallet([hex]) {
    const mtx = MTX.fromRaw(Buffer.from(hex, 'hex'));
    mtx.view = await mempool.getSpentView(mtx);
    sign(mtx);
    return {hex: mtx.toRaw().toString('hex'), complete: mtx.isSigned()};
  },

  // Core takes amounts as text, too, and outputs as a list.
  async createrawtransaction([inputs, outs, locktime = 0]) {
    const all = Array.isArray(outs) ? Object.assign({}, ...outs) : outs;
    const numbers = Object.entries(all).map(([name, value]) => [name, name === 'data' ? value : Number(value)]);
    return theirs.createrawtransaction.call(rpc, [inputs, Object.fromEntries(numbers), locktime]);
  },

  async evictmempool([txid]) {
    const entry = mempool.getEntry(known(txid));
    if (!entry)
      fail(-5, 'Transaction not in mempool');
    mempool.evictEntry(entry);
    return null;
  }
});

// One call at a time, as under Core's lock: no two payments take the same coins, and nothing is mined within a reorganisation.
const execute = rpc.execute;
let last = Promise.resolve();
rpc.execute = async function inTurn(json, help) {
  if (!ready)
    throw new RPCError(-28, 'Loading block index...');
  const before = last;
  let done;
  last = new Promise((resolve) => { done = resolve; });
  await before;
  try {
    return await execute.call(rpc, json, help);
  } finally {
    done();
  }
};

(async () => {
  await node.ensure();
  await node.open();
  await rpc.mineBlocks(Number(blocks), newRing().getAddress());
  ready = true;
})().catch((error) => {
  console.error(error.stack);
  process.exit(1);
});
