"""Invented receipts of invented shops, printed in several layouts and worn by several kinds of scanner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from random import Random

SHOPS = (
    ("KOPI SUDUT BIRU SDN BHD", "(1187342-K)", "12, JALAN KENANGA 3/4, 43000 KAJANG", "GST ID : 000712345678"),
    ("LENTERA BOOKS & STATIONERY", "JM0456123-W", "LOT 8, MEDAN SELERA TIMUR, 81300 SKUDAI", "TEL : 07-555 0142"),
    ("TIGA PENJURU HARDWARE TRADING", "(002198734-M)", "NO 44, JALAN BESI 2, 52100 KEPONG", "TEL : 03-5550 1177"),
    ("RESTORAN DAUN HIJAU", "002077881-T", "7, LORONG MELATI, 47400 PETALING JAYA", "GST REG NO: 001998877665"),
    ("NUSA RAYA TAXI SERVICE SDN. BHD.", "(998812-D)", "UNIT 3, TERMINAL SELATAN, 57000 KL", "TEL : 1-300-555-019"),
    ("PERCETAKAN MERAK EMAS", "SA0331177-P", "NO.19, JALAN PERUSAHAAN, 40150 SHAH ALAM", "GST NO : 000334455667"),
    ("HOTEL PERSIARAN LAUT (M) SDN BHD", "(771209-A)", "1, PERSIARAN PANTAI, 10400 PENANG", "TEL : 04-555 0900"),
    ("PASARAYA EMPAT MUSIM S/B", "(610022-V)", "NO 2-6, JALAN PASAR BARU, 41150 KLANG", "GST ID. NO : 000887766554"),
    ("KLINIK & FARMASI SERI DELIMA", "JM0912873-H", "15, JALAN DELIMA 1, 81100 JOHOR BAHRU", "TEL : 07-555 0388"),
    ("STESEN MINYAK LEBUH TENGAH", "(001733221-X)", "KM 18, LEBUHRAYA TENGAH, 43500 SEMENYIH", "SITE: 5107"),
    ("ELEKTRIK CAHAYA MAJU ENTERPRISE", "002244668-U", "33-G, JALAN MAJU 5/1, 56100 CHERAS", "GST NO. : 000556677889"),
    ("BAKERI TANGKAI GANDUM", "000991188-P", "NO 5, JALAN GANDUM, 58000 KUALA LUMPUR", "TEL : 03-5550 2210"),
)
ABROAD = (
    ("BAECKEREI LINDENHOF GMBH", "HRB 551209", "LINDENSTR. 8, 10969 BERLIN", "EUR"),
    ("HARBOUR LIGHT CAFE PTE LTD", "UEN 201788123K", "21 PIER WALK, SINGAPORE 018956", "SGD"),
    ("NORTHGATE TAXIS LTD", "VAT 991 2210 88", "4 NORTHGATE, LEEDS LS2 7JU", "GBP"),
)
GOODS = (
    "A4 PAPER 80G", "WHITEBOARD MARKER", "NASI LEMAK SET", "TEH TARIK", "AIRPORT TRANSFER", "EXTENSION CORD 3M",
    "NAME CARDS 100PCS", "ROLL OF TAPE", "PARKING", "UNLEADED 95", "BREAKFAST BUFFET", "FIRST AID KIT", "USB CABLE",
    "CHICKEN RICE", "MINERAL WATER", "POSTAGE", "LED BULB 9W", "SANDWICH TRAY", "NOTEBOOK A5", "TONER 12X",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Purchase:
    """What was bought where and when; prices in hundredths, tax included."""

    shop: tuple[str, str, str, str]
    day: date
    items: tuple[tuple[str, int, int], ...]  # name, quantity, price of one
    mark: str = "RM"

    @property
    def total(self) -> int:
        """Sum of the items."""
        return sum(quantity * price for _, quantity, price in self.items)


def purchase(random: Random, day: date, totals: range) -> Purchase:
    """Something bought in a home shop for one of `totals`."""
    return _purchase(random, random.choice(SHOPS), day, random.choice(totals))


def purchase_abroad(random: Random, day: date, totals: range) -> Purchase:
    """Something bought abroad in the shop's own currency."""
    name, register, address, currency = random.choice(ABROAD)
    return replace(_purchase(random, (name, register, address, ""), day, random.choice(totals)), mark=currency)


def _purchase(random: Random, shop: tuple[str, str, str, str], day: date, total: int) -> Purchase:
    left = total
    items = []
    for name in random.sample(GOODS, random.randint(1, 4)):
        quantity = random.randint(1, 3)
        price = max(5, left // (2 * quantity) // 5 * 5)
        if quantity * price < left:
            items.append((name, quantity, price))
            left -= quantity * price
    return Purchase(shop, day, (*items, ("SERVICE CALL", 1, left)))


def _money(hundredths: int) -> str:
    return f"{hundredths // 100:,}.{hundredths % 100:02d}"


def _net(total: int) -> int:
    return round(total / 1.06)


def till(bought: Purchase, random: Random) -> str:
    """A shop's till slip: cash and change."""
    name, register, address, contact = bought.shop
    cash = (bought.total // 1000 + random.randint(1, 3)) * 1000
    lines = [
        name,
        register,
        address,
        contact,
        "TAX INVOICE",
        f"DATE : {bought.day:%d/%m/%Y}  TIME : 12:{random.randint(10, 59)}",
    ]
    lines += [
        f"{item}\n{quantity} X  {_money(price)}  {_money(quantity * price)} SR"
        for item, quantity, price in bought.items
    ]
    lines += [f"ITEM(S) : {len(bought.items)}", f"TOTAL  {bought.mark} {_money(bought.total)}"]
    lines += [f"CASH  {bought.mark} {_money(cash)}", f"CHANGE  {bought.mark} {_money(cash - bought.total)}"]
    return "\n".join([*lines, "GOODS SOLD ARE NOT RETURNABLE", "THANK YOU"])


def invoice(bought: Purchase, random: Random) -> str:
    """A counter invoice: net, tax, total, tax summary, paid by card."""
    name, register, address, contact = bought.shop
    net = _net(bought.total)
    lines = [
        name,
        register,
        address,
        contact,
        "SIMPLIFIED TAX INVOICE",
        f"DOC NO. : CS{random.randint(10_000, 99_999):08d}  DATE: {bought.day:%d-%m-%Y}",
    ]
    lines += ["ITEM  QTY  U/PRICE  AMOUNT"]
    lines += [
        f"{item}  {quantity}  {_money(price)}  {_money(quantity * price)}" for item, quantity, price in bought.items
    ]
    lines += [
        f"SUB-TOTAL (EXCL. GST) :  {_money(net)}",
        f"TOTAL GST :  {_money(bought.total - net)}",
        "ROUNDING :  0.00",
    ]
    lines += [
        f"TOTAL SALES (INCLUSIVE OF GST) {bought.mark} :  {_money(bought.total)}",
        f"VISA CARD :  {_money(bought.total)}",
    ]
    lines += ["GST SUMMARY", "TAX CODE  %  AMOUNT  TAX", f"SR  6  {_money(net)}  {_money(bought.total - net)}"]
    return "\n".join([*lines, "THANK YOU. PLEASE COME AGAIN"])


def cafe(bought: Purchase, random: Random) -> str:
    """A restaurant's bill: the total twice, exact payment."""
    name, register, address, contact = bought.shop
    lines = [
        name,
        register,
        address,
        contact,
        f"BILL NO : {random.randint(1000, 9999)}  TABLE {random.randint(1, 30)}",
        f"{bought.day:%d %b %Y} 19:{random.randint(10, 59)}".upper(),
    ]
    lines += [f"{quantity} {item}  {_money(quantity * price)}" for item, quantity, price in bought.items]
    lines += [f"SUBTOTAL :  {_money(bought.total)}", f"NETT TOTAL : {bought.mark} {_money(bought.total)}"]
    return "\n".join([*lines, f"CASH :  {_money(bought.total)}", f"CHANGE :  {_money(0)}", "THANK YOU"])


LAYOUTS: tuple[Callable[[Purchase, Random], str], ...] = (till, invoice, cafe)


def printed(bought: Purchase, random: Random) -> str:
    """The purchase as one of the layouts prints it."""
    return random.choice(LAYOUTS)(bought, random)


_CONFUSED = {
    "0": "O",
    "O": "0",
    "1": "I",
    "I": "1",
    "5": "S",
    "S": "5",
    "8": "B",
    "B": "8",
    "L": "1",
    "E": "F",
    ".": " ",
}


def blurred(text: str, random: Random, share: float) -> str:
    """The text as a poor scan reads it: `share` of its confusable characters are taken for others."""
    return "".join(_CONFUSED[c] if c in _CONFUSED and random.random() < share else c for c in text)


def rescanned(text: str, random: Random) -> str:
    """The same receipt scanned again: other noise around the same head, day and amounts."""
    head, *body = text.split("\n")
    noise = ["", "POSTED", f"[{random.randint(100, 999)}]"]
    body = [
        line.replace("  ", " ") if random.random() < 0.3 and not line.startswith(("TOTAL", "DATE")) else line
        for line in body
    ]
    return "\n".join([head, *body, random.choice(noise)])
