"""The merchant of a receipt: the legal name where its head prints one, otherwise its only head line."""

from __future__ import annotations

import re

from examples.expenses.lines import Line
from examples.expenses.reading import Field

HEAD = 14
"""Lines in which a merchant introduces itself."""

_LEGAL_FORM = re.compile(
    r"\b(?:SDN\.?\s?BHD|BHD|S/B|SB|PTE\.?\s?LTD|LTD|LIMITED|LLC|LLP|PLC|INC|CORP|GMBH|PTY|SARL|OY)\b\.?", re.IGNORECASE
)
_CONTINUES = re.compile(
    r"\s*(?:(?:CO|COMPANY|ENTERPRISE|TRADING|HOLDINGS)\b\.?\s*)?(?:\(\w{1,6}\)\s*)?(?:SDN|BHD|PTE|LTD|LIMITED|\(|$)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"\b(?:NO|LOT|TEL|FAX|PHONE|JALAN|JLN|GST|SST|VAT|REG|ROC|LEVEL|FLOOR|FLR|UNIT|STREET|ROAD|AVENUE|SITE|TABLE|DATE|TAMAN"
    r"|BLOCK|BLK|WISMA|PLAZA|BILL|PT|BATU|KM)\b\s*[.:#\d,(]?|\d{5}|@|WWW"
    r"|^\W*(?:CO|COMPANY|BR)\W*(?:REG|NO)\b",
    re.IGNORECASE,
)
_NOT_A_NAME = re.compile(
    r"INVOICE|RECEIPT|WELCOME|THANK|ORDER|QUEUE|CASH\s?(?:SALE|BILL)|POSTED|DUPLICATE|COPY|\[|PLEASE|GOODS|\*\*|ERROR|WARNING"
    r"|FEEDBACK|PROMO|REPRINT|SHOPPING|CUSTOMER|MACHINE|SIGN",
    re.IGNORECASE,
)
_OWNER = re.compile(r"^.{0,12}\bOWN(?:ED)? BY\s*:?\s*", re.IGNORECASE)
_REGISTRATION = re.compile(r"\s*\(?\b[A-Z]{0,2}\d{5,}\s?-?\s?[A-Z]?\b\)?.*$", re.IGNORECASE)


def read_merchant(lines: list[Line]) -> Field[str] | None:
    """The merchant's name on one line with its verbatim words as quote, or None where no line is surely a name."""
    head = _head(lines)
    for at, line in enumerate(head):
        if legal := list(_LEGAL_FORM.finditer(line)):
            name = line[: legal[-1].end()]
            for above in reversed(head[:at]):
                if _CONTINUES.match(name) or name.count("(") < name.count(")"):
                    name = f"{above}\n{name}"
            return _field(_OWNER.sub("", name), "legal form")
    if len(head) > 1 and head[0].endswith(("&", "-", ",")):
        return _field(f"{head[0]}\n{head[1]}", "first line")
    return _field(_REGISTRATION.sub("", head[0]), "first line") if len(head) == 1 else None


def _field(name: str, check: str) -> Field[str] | None:
    value = " ".join(name.split())
    return Field(value, name.strip(), (check,)) if value else None


def _is_name(text: str) -> bool:
    letters = sum(character.isalpha() for character in text)
    return letters >= 4 and letters * 2 >= len(text.replace(" ", "")) and not _NOT_A_NAME.search(text)


def _head(lines: list[Line]) -> list[str]:
    """The lines between the top and the address, without slogans and numbers."""
    head: list[str] = []
    for line in lines[:HEAD]:
        text = line.text.strip()
        legal = _LEGAL_FORM.search(text) is not None and not _NOT_A_NAME.search(text)
        if legal or (_is_name(text) and not _ADDRESS.match(text) and not (head and _ADDRESS.search(text))):
            head.append(text)
        elif head:
            break
    return head
