"""Names of currencies as they stand beside an amount in a text."""

from __future__ import annotations

from typing import Final

CODES: Final = frozenset(
    """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP
    CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF
    IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD
    MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB
    RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD
    UYU UZS VED VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG
    """.split()  # noqa: SIM905 - quoted one by one they could not be read
)
"""ISO 4217 codes of money in circulation."""

_DOLLARS = frozenset(
    """
    USD AUD CAD NZD SGD HKD TWD MXN ARS CLP COP BBD BMD BND BSD BZD FJD GYD JMD KYD LRD NAD SBD SRD TTD XCD
    """.split()  # noqa: SIM905 - quoted one by one they could not be read
)

SYMBOLS: Final[dict[str, frozenset[str]]] = {
    "€": frozenset({"EUR"}),
    "£": frozenset({"GBP", "EGP", "FKP", "GIP", "SHP", "SSP", "SYP"}),
    "¥": frozenset({"JPY", "CNY"}),
    "$": _DOLLARS,
    "US$": frozenset({"USD"}),
    "S$": frozenset({"SGD"}),
    "A$": frozenset({"AUD"}),
    "C$": frozenset({"CAD"}),
    "HK$": frozenset({"HKD"}),
    "NZ$": frozenset({"NZD"}),
    "NT$": frozenset({"TWD"}),
    "R$": frozenset({"BRL"}),
    "RM": frozenset({"MYR"}),
    "₹": frozenset({"INR"}),
    "₩": frozenset({"KRW"}),
    "₺": frozenset({"TRY"}),
    "₫": frozenset({"VND"}),
    "฿": frozenset({"THB"}),
    "₱": frozenset({"PHP"}),
    "₪": frozenset({"ILS"}),
    "zł": frozenset({"PLN"}),
    "Kč": frozenset({"CZK"}),
}
"""What a symbol may stand for; one that stands for several currencies contradicts the others and proves none."""


def currencies_named(name: str) -> frozenset[str]:
    """The currencies that a code or symbol may mean; empty where it is neither."""
    return frozenset({name}) if name in CODES else SYMBOLS.get(name, frozenset())
