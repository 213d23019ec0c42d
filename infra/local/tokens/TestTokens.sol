// SPDX-License-Identifier: AGPL-3.0-or-later
// Tokens for tests and for the local stack. They behave like the real ones in what a payment service can trip over.
pragma solidity ^0.8.20;

/// What all of them share: who has how much, and an owner who makes coins.
abstract contract Ledger {
    string public name;
    uint8 public immutable decimals;
    uint256 public totalSupply;
    address public owner;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    constructor(string memory name_, uint8 decimals_) {
        name = name_;
        decimals = decimals_;
        owner = msg.sender;
    }

    modifier onlyOwner() {
        require(msg.sender == owner, "not the owner");
        _;
    }

    function mint(address to, uint256 value) external onlyOwner {
        totalSupply += value;
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function _move(address from, address to, uint256 value) internal virtual {
        require(to != address(0), "transfer to the zero address");
        require(balanceOf[from] >= value, "transfer amount exceeds balance");
        balanceOf[from] -= value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }

    function _spend(address from, uint256 value) internal {
        require(allowance[from][msg.sender] >= value, "insufficient allowance");
        allowance[from][msg.sender] -= value;
    }
}

/// EIP-20 to the letter, as USDC and DAI are.
contract StandardToken is Ledger {
    string public symbol;

    constructor(string memory symbol_, string memory name_, uint8 decimals_) Ledger(name_, decimals_) {
        symbol = symbol_;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        _move(msg.sender, to, value);
        return true;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        _spend(from, value);
        _move(from, to, value);
        return true;
    }
}

/// As USDT on Ethereum: transfer, approve and transferFrom return nothing, an allowance is only changed through zero, and there is a blacklist.
contract TetherToken is Ledger {
    string public symbol;
    mapping(address => bool) public isBlackListed;

    constructor(string memory symbol_, string memory name_, uint8 decimals_) Ledger(name_, decimals_) {
        symbol = symbol_;
    }

    function addBlackList(address user) external onlyOwner {
        isBlackListed[user] = true;
    }

    function removeBlackList(address user) external onlyOwner {
        isBlackListed[user] = false;
    }

    function transfer(address to, uint256 value) external {
        require(!isBlackListed[msg.sender], "sender is blacklisted");
        _move(msg.sender, to, value);
    }

    function approve(address spender, uint256 value) external {
        require(value == 0 || allowance[msg.sender][spender] == 0, "set the allowance to zero first");
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
    }

    function transferFrom(address from, address to, uint256 value) external {
        require(!isBlackListed[from], "sender is blacklisted");
        _spend(from, value);
        _move(from, to, value);
    }
}

/// Takes one percent on the way: two Transfer logs, and less arrives than was sent.
contract FeeToken is Ledger {
    string public symbol;

    constructor(string memory symbol_, string memory name_, uint8 decimals_) Ledger(name_, decimals_) {
        symbol = symbol_;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        uint256 fee = value / 100;
        _move(msg.sender, owner, fee);
        _move(msg.sender, to, value - fee);
        return true;
    }
}

/// As MKR: symbol is a bytes32. And as some others: transfer answers false in place of reverting.
contract OldToken is Ledger {
    bytes32 public symbol;

    constructor(bytes32 symbol_, string memory name_, uint8 decimals_) Ledger(name_, decimals_) {
        symbol = symbol_;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        if (balanceOf[msg.sender] < value) return false;
        _move(msg.sender, to, value);
        return true;
    }
}

interface Payable {
    function transfer(address to, uint256 value) external;
}

/// What other people's contracts do: pay, and undo it.
contract Relay {
    receive() external payable {}

    function pay(address token, address to, uint256 value) public {
        Payable(token).transfer(to, value);
    }

    function payAndRevert(address token, address to, uint256 value) public {
        Payable(token).transfer(to, value);
        revert("undone");
    }

    /// The inner payment is undone, the outer transaction succeeds.
    function payAndCatch(address token, address to, uint256 value) external {
        try this.payAndRevert(token, to, value) {} catch {}
    }

    /// A value transfer inside a transaction: no log, and not the transaction's own value.
    function forward(address payable to) external payable {
        (bool done, ) = to.call{value: msg.value}("");
        require(done, "not taken");
    }
}

/// Logs under the Transfer topic that are no EIP-20 transfers.
contract OddLogs {
    bytes32 private constant TOPIC = keccak256("Transfer(address,address,uint256)");

    /// EIP-721: the third argument is indexed too.
    function collectible(address to, uint256 id) external {
        bytes32 topic = TOPIC;
        bytes32 from = bytes32(uint256(uint160(msg.sender)));
        bytes32 recipient = bytes32(uint256(uint160(to)));
        assembly {
            log4(0, 0, topic, from, recipient, id)
        }
    }

    /// Three topics and as many bytes of data as asked.
    function sized(address to, uint256 size) external {
        bytes32 topic = TOPIC;
        bytes32 from = bytes32(uint256(uint160(msg.sender)));
        bytes32 recipient = bytes32(uint256(uint160(to)));
        assembly {
            mstore(0, 7)
            log3(0, size, topic, from, recipient)
        }
    }

    /// An amount that no balance can hold.
    function huge(address to, uint256 value) external {
        bytes32 topic = TOPIC;
        bytes32 from = bytes32(uint256(uint160(msg.sender)));
        bytes32 recipient = bytes32(uint256(uint160(to)));
        assembly {
            mstore(0, value)
            log3(0, 32, topic, from, recipient)
        }
    }
}

/// The network's own coin under the face of EIP-20, as Polygon's 0x…1010 is: balances are the native ones, and what is sent through it
/// moves native coins and logs a Transfer of the same amount. With fewer decimals it leaves the last digits out.
contract NativeFace {
    string public symbol = "FACE";
    string public name = "Own Coin";
    uint8 public immutable decimals;

    event Transfer(address indexed from, address indexed to, uint256 value);

    constructor(uint8 decimals_) {
        decimals = decimals_;
    }

    function balanceOf(address who) external view returns (uint256) {
        return who.balance / 10 ** (18 - decimals);
    }

    function transfer(address payable to, uint256 value) external payable returns (bool) {
        require(msg.value == value * 10 ** (18 - decimals), "not that much");
        (bool done, ) = to.call{value: msg.value}("");
        require(done, "not taken");
        emit Transfer(msg.sender, to, value);
        return true;
    }
}

/// A token that the network's own coin is changed into, as WETH and WMATIC are.
contract WrappedNative is Ledger {
    string public symbol = "WNAT";

    constructor() Ledger("Wrapped Native", 18) {}

    receive() external payable {
        balanceOf[msg.sender] += msg.value;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        _move(msg.sender, to, value);
        return true;
    }
}
