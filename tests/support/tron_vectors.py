"""Real transactions and blocks of Tron's networks, from published documents. `raw` is raw_data_hex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Vector:
    """`signature` and `signer` where the document has them; the signer is the owner of the contract."""

    source: str
    kind: str
    value: dict[str, Any]
    raw: str
    txid: str
    signature: str = ""


def _any(name: str) -> str:
    return f"type.googleapis.com/protocol.{name}".encode().hex()


VECTORS = [
    Vector(
        "tronprotocol/documentation-en, createtransaction.md (Nile)",
        "TransferContract",
        {
            "amount": 1000000,
            "owner_address": "41dd791d6b49e190062d650e6a23c575510d35f2f9",
            "to_address": "4192ad11c1bf16b3b14b0bd6b5c7e2db73a0b5e83a",
        },
        "0a0229272208939ece39d08a7abe40d8c483c1dd335a67080112630a2d" + _any("TransferContract") + "12320a15"
        "41dd791d6b49e190062d650e6a23c575510d35f2f912154192ad11c1bf16b3b14b0bd6b5c7e2db73a0b5e83a18c0843d70d68780c1dd33",
        "6303c7639f591407ef9f34a7ac8c9c9a21151f5a6af21924502515734fc267ab",
    ),
    Vector(
        "TronGrid's v1 API, mainnet block 54393481, with net_usage 268 and fee 1000000",
        "TransferContract",
        {
            "amount": 40000000,
            "owner_address": "4179309abcff2cf531070ca9222a1f72c4a5136874",
            "to_address": "41c6a137bb170cc0dd40fcb83f18b389fa9426ac46",
        },
        "0a02fa7322082b2f6684f998649540d0d4d3f9a5315a68080112640a2d" + _any("TransferContract") + "12330a15"
        "4179309abcff2cf531070ca9222a1f72c4a5136874121541c6a137bb170cc0dd40fcb83f18b389fa9426ac461880b489137092b9f4f7a531",
        "1abdaae882a5bd80bda189e8722705a4b7d110f580da3ad000d0fe53e61b469f",
        "1ddad0478c0a1c3c12c970cb90ca09446223d634ea5c315768b4c64cf273545a"
        "12c186e5de9884117f4933b4635347a38ff8a26d3ab659520adbe60547e071b600",
    ),
    Vector(
        "tronprotocol/documentation-en, getsignweight.md (mainnet, USDT)",
        "TriggerSmartContract",
        {
            "data": "a9059cbb0000000000000000000000415d4a41a3b0cdda5c03df72b38a20aa1b88777c75"
            "00000000000000000000000000000000000000000000000000000000f9cd95c0",
            "owner_address": "41cf2e99409d2a9a9190197ab0bff35ca87818c41e",
            "contract_address": "41a614f803b6fd780986a42c78ec9c7f77e6ded13c",
        },
        "0a0268bd2208bc830d2c09fa23d14092a3bae4a3335aae01081f12a9010a31" + _any("TriggerSmartContract") + "12740a15"
        "41cf2e99409d2a9a9190197ab0bff35ca87818c41e121541a614f803b6fd780986a42c78ec9c7f77e6ded13c2244"
        "a9059cbb0000000000000000000000415d4a41a3b0cdda5c03df72b38a20aa1b88777c75"
        "00000000000000000000000000000000000000000000000000000000f9cd95c070afceb6e4a3339001c0f4a46b",
        "4ad97d49409cfff338d2f9e71d4019c70e82030b52e15e208b1808f2f3ea782e",
        "c99cdc8af6f47dc65a75aa0c6da1c5be8510736e581043162c3e8525c6e0ed8f"
        "592adaa74ba250136ea6e1fb125b3d3d024ac6abd3e24c28097d66a8e2a0c0aa01",
    ),
    Vector(
        "tronprotocol/documentation-zh, freezebalancev2.md (Nile)",
        "FreezeBalanceV2Contract",
        {"resource": "ENERGY", "frozen_balance": 1000000000, "owner_address": "41dd791d6b49e190062d650e6a23c575510d35f2f9"},
        "0a02283b220851bf0b88daaaea3740b8a9d8c0dd335a5b083612570a34" + _any("FreezeBalanceV2Contract") + "121f0a15"
        "41dd791d6b49e190062d650e6a23c575510d35f2f9108094ebdc03180170d8e7d4c0dd33",
        "081256264131fbc9f3d4686aab15ae69c0e77b39d276367c11a7ab13e39747ec",
    ),
    Vector(
        "tronprotocol/wallet-cli, README.md: UnFreezeBalanceV2 of bandwidth, whose code is left out",
        "UnfreezeBalanceV2Contract",
        {"unfreeze_balance": 9000000, "owner_address": "4159e3741a68ec3e1ebba80ad809d5ccd31674236e"},
        "0a020000220819b59068c6058ff440f19e89b4d1305a5a083712560a36" + _any("UnfreezeBalanceV2Contract") + "121c0a15"
        "4159e3741a68ec3e1ebba80ad809d5ccd31674236e10c0a8a50470ebf0e2a9d130",
        "dcfea1d92fc928d24c88f7f71a03ae8105d0b5b112d6d48be93d3b9c73bea634",
        "f73a278f742c11e8e5ede693ca09b0447a804fcb28ea2bfdfd8545bb05da7be4"
        "4bd08cfaa92bd4d159178f763fcf753f28d5296bd0c3d4557532cce3b256b9da00",
    ),
    Vector(
        "trustwallet/wallet-core, Tron's TransferAsset test",
        "TransferAssetContract",
        {
            "asset_name": "31303030393539",
            "amount": 4,
            "owner_address": "415cd0fb0ab3ce40f3051414c604b27756e69e43db",
            "to_address": "41521ea197907927725ef36d70f25f850d1659c7c7",
        },
        "0a02b80122080e2bc08d550f5f5840a0b5d58ff02c5a730802126f0a32" + _any("TransferAssetContract") + "12390a0731303030393539"
        "1215415cd0fb0ab3ce40f3051414c604b27756e69e43db1a1541521ea197907927725ef36d70f25f850d1659c7c7200470d889a4a9e62c",
        "546a3d07164c624809cf4e564a083a7a7974bb3c4eff6bb3e278b0ca21083fcb",
        "77f5eabde31e739d34a66914540f1756981dc7d782c9656f5e14e53b59a15371"
        "603a183aa12124adeee7991bf55acc8e488a6ca04fb393b1a8ac16610eeafdfc00",
    ),
]


def _transfer(when: str, ref: str, stamp: str, owner: str, to: str, amount: str, sizes: str) -> str:
    head = f"0a02{ref}40{when}5a{sizes[:2]}080112{sizes[2:4]}0a2d" + _any("TransferContract")
    return f"{head}12{sizes[4:]}0a15{owner}1215{to}18{amount}70{stamp}"


_A, _B = "41382b835dd735c2d634646138ff8ef333d9ab0502", "4137a9511e294f1757678f366ad3b6102d35ebd4dc"
_EXPIRES = "809a8ff09732"
BLOCK: dict[str, Any] = {
    "blockID": "0000000002cc15576e3142f7d82e5dddaa21d6c19c798bdbda2085dbb24e7fb1",
    "header": {
        "number": 46929239,
        "txTrieRoot": "a68786f79e81cd50754c111440e5e2701abe7a7c157efd3de5e699b9e52aa0fd",
        "witness_address": "41d0668c49826f2ca13e3848b5eb3414fb059b7cc0",
        "parentHash": "0000000002cc1556fbed6c734d1bff1154cec46dd572ad0d4a3142a373a1a829",
        "version": 30,
        "timestamp": 1724396007000,
    },
    "witness_signature": "31c7a2ca838d47d29ccd008adbca0aabd1bcfea4e649402b529b067126bb9d67"
    "77ee6391f16180968cdb57017885f21a5af2b7da4f350cff82d219dd7dd81ee901",
    "transactions": [
        (
            "ab1f6628abb23a09a1bd1fe3f632cb917e7f6c1a438527cc2a32f63d92458a10",
            _transfer(_EXPIRES, "154222089d620d0dc8f981be", "93cd8bf09732", _A, _B, "e807", "666231"),
            "e921a2fdbcc51449a331c5cd5b7586dbbf168cfee1d614516c704675cdcc7765"
            "334f2b5e33fcd22bd0f2ed143e5c19c8bac54066bf1acc748fb925382484bd4f01",
        ),
        (
            "599b66a8d658974e57f906ed1953d66b8723403fe48198fa2c575668f6b9de5a",
            _transfer(_EXPIRES, "154222089d620d0dc8f981be", "92cd8bf09732", _A, _B, "e807", "666231"),
            "ad89e79778b21e78a32aed29f162e55f98393e4518de463a2888a4608171c62c"
            "1e0cf0e00572c3a04e7f3fabfceb09c30aaa56a2e1c13f50404c1f590989090c00",
        ),
        (
            "a3e7da80300fc5b5220cf88d726c1d60c998073bc659d77bc419ede7443d95bc",
            _transfer(_EXPIRES, "1544220859381cdb45f11478", "83cf8bf09732", _A, _B, "e807", "666231"),
            "4a7737a2ba6de1c864a4daa6aaa3666ac496b8c3ebaf2da54a4e8a13ca8b995f"
            "5d825647ed5aa7ab302742b7210b03a8ab56ff6ea4f1423ef808ec7913af0e1600",
        ),
        (
            "e8fa01d91adde847d38112d022c441cc352c1636585182a2c1bfa5905e09891e",
            "0a021543220853af20522d28465740c8828ff097325aae01081f12a9010a31" + _any("TriggerSmartContract") + "12740a15"
            "417edc1887cbb12c5a3eee51ec1a4882fd1d48e40012154142a1e39aefa49290f2b3f9ed688d7cecf86cd6e02244"
            "a9059cbb00000000000000000000000083e99c951715215d63b36d8d126a2b81ad1b2c2d"
            "0000000000000000000000000000000000000000000000000000000011e1a30070b4bd8bf0973290018094ebdc03",
            "f5468fa750386595535d8e6fa9be5f509a5daf8208de8de9a15734d8e8af9ab8"
            "6d6a04eaa48966647f2873b9bad2934bd798c8834e7155b74c44eb3bb667e9d21b",
        ),
        (
            "68bc1244da2dbcde50954c4b250d07a258eb02fbb228681d600dfac27b44d145",
            _transfer(
                _EXPIRES, "15562208fbed6c734d1bff11", "a0c58bf09732", "41bc649db213a41a11aac2d3186e832fa9fc84c030",
                "414206ac4a5fe33602dc557b1352675d2ff1456222", "a08d06", "676332",
            ),
            "15318100246b2a01f1f2dc641b1b50dc75e0e6f10e97349fecdba78827e003f2"
            "28ba6825384251be5acbdb136c70586280d703ac29e3e611333f659b0ff86ba11b",
        ),
    ],
}  # fmt: skip
"""A whole block of a test network, from the tests of a Go client: TestGetNowBlock of a `solidityclient` package."""
EMPTY_BLOCK: dict[str, Any] = {
    "blockID": "00000000000000644df09e6883a3a7900814f8d78cf47b255b7ed284527a773d",
    "header": {
        "number": 100,
        "txTrieRoot": "00" * 32,
        "witness_address": "414b4778beebb48abe0bc1df42e92e0fe64d0c8685",
        "parentHash": "0000000000000063ed8544c4c17fc053dfc729e610673c783bcdc3cf0781b07f",
        "timestamp": 1529891811000,
    },
    "witness_signature": "277d4440e2feb552b6d2d557ba407f68310887020fcc7ef6e2733286a0d13c70"
    "3ebf2306293bda9d2ddac09835be67583c736a65494115825b6f4ab6a15f1e0f01",
}
"""Block 100 of mainnet, from tronprotocol/tron-deployment, README.md."""
