// Compiles TestTokens.sol into one JSON file per contract. See __init__.py for when and how.
const fs = require("fs");
const path = require("path");
const solc = require(require.resolve("solc", { paths: [process.cwd(), __dirname] }));

const file = "TestTokens.sol";
const input = {
  language: "Solidity",
  sources: { [file]: { content: fs.readFileSync(path.join(__dirname, file), "utf8") } },
  settings: {
    evmVersion: "paris",
    optimizer: { enabled: true, runs: 200 },
    metadata: { bytecodeHash: "none" },
    outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
  },
};
const output = JSON.parse(solc.compile(JSON.stringify(input)));
for (const problem of output.errors || []) console.error(problem.formattedMessage);
if ((output.errors || []).some((problem) => problem.severity === "error")) process.exit(1);
for (const [name, contract] of Object.entries(output.contracts[file])) {
  if (!contract.evm.bytecode.object) continue;
  const artifact = { contract: name, compiler: solc.version(), evmVersion: "paris", abi: contract.abi, bytecode: "0x" + contract.evm.bytecode.object };
  fs.writeFileSync(path.join(__dirname, name + ".json"), JSON.stringify(artifact, null, 1) + "\n");
}
