"""What the words beside an amount say it is. Scanned letters are unsure, so words are compared by their shape."""

from __future__ import annotations

from enum import Enum, auto

LARGEST_ROUNDING = 5
"""Cash is rounded to five hundredths; a larger amount beside the word "rounded" is the rounded total itself."""


class Role(Enum):
    """What an amount is, by its label."""

    TOTAL = auto()  # what is owed, as far as the label tells
    ROUNDED = auto()  # what is owed after rounding to the smallest coin
    BASE = auto()  # a subtotal, or the amount before tax
    TAX = auto()
    SERVICE = auto()
    DISCOUNT = auto()
    ROUNDING = auto()
    PAID = auto()
    CHANGE = auto()
    COUNT = auto()  # beside a number of pieces or points
    ITEM = auto()  # no word we know: a bought thing


_SHAPES = str.maketrans("01|!L58-/.:", "OIIIISB    ")


def skeleton(text: str) -> str:
    """`text` with the characters that scanners confuse made one, so that `T0TAI` and `TOTAL` compare equal."""
    return f" {text.upper().translate(_SHAPES)} "


class _Words:
    """Some words by their shape; `_` stands for a space, which also marks where a word must begin or end."""

    def __init__(self, words: str) -> None:
        self._shapes = tuple(skeleton(word).strip().replace("_", " ") for word in words.split())

    def among(self, label: str) -> bool:
        return any(shape in label for shape in self._shapes)


_ROUNDING = _Words("ROUND _RND_")
_TOTAL = _Words("TOTAL TTL JUMLAH _DUE PAYABLE NETT _NET_AM AMOUNT_DUE AMT_DUE")
_FINAL = _Words("GRAND NET_TOTAL NETT_TOTAL PAYABLE _DUE AFTER")
_INCLUSIVE = _Words("INCL INC_ PAYABLE")
_TAX_OWED = _Words("GST_PAYABLE TAX_PAYABLE VAT_PAYABLE")
_IN_ORDER = (  # the first that fits: "TOTAL DISCOUNT" is a discount, "SUBTOTAL" not a total, "CARD TOTAL" a payment
    (Role.CHANGE, _Words("_CHANGE CHNG BAKI")),
    (Role.DISCOUNT, _Words("DISC SAVING COUPON VOUCHER REBATE")),
    (Role.COUNT, _Words("QTY QUANTITY COUNT POINT ITEM(S) _ITEMS TOTAL_ITEM PCS")),
    (Role.BASE, _Words("SUB_TOTAL SUBTOTAL SUB_TOT EXCL EXC_ BEFORE TAXABLE NET_SALES")),
    (Role.SERVICE, _Words("SERV SVC SVR")),
    (Role.TAX, _Words("GST SST VAT _TAX MWST CUKAI")),
    (
        Role.PAID,
        _Words("CASH NDERED TENDER PAID PAYMENT _PAY_ RECEIVED VISA MASTER _CARD AMEX DEBIT CREDIT EDC BAYAR WALLET"),
    ),
    (Role.TOTAL, _TOTAL),
)


def is_final(label: str) -> bool:
    """Whether the label says that nothing is added after this amount."""
    return _FINAL.among(skeleton(label))


def role_of(label: str, hundredths: int) -> Role:
    """The role that `label` gives to an amount; a label without a word we know stands beside a bought thing."""
    shape = skeleton(label)
    if _ROUNDING.among(shape):
        return Role.ROUNDING if abs(hundredths) <= LARGEST_ROUNDING else Role.ROUNDED
    inclusive = _TOTAL.among(shape) and _INCLUSIVE.among(shape) and not _TAX_OWED.among(shape)
    for role, words in _IN_ORDER:
        if words.among(shape) and not (role is Role.TAX and inclusive):
            return role
    return Role.ITEM
