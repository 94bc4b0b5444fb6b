"""What a browser would send for a form of a page."""

from __future__ import annotations

from html.parser import HTMLParser


class _Forms(HTMLParser):
    """Collects the fields of each form by its action, as they stand."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[tuple[str, str]]] = {}
        self._fields: list[tuple[str, str]] = []
        self._select = ""
        self._option: str | None = None
        self._text: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        at = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._fields = self.found.setdefault(at["action"], [])
        elif tag == "input" and "name" in at:
            is_box = at.get("type") in {"checkbox", "radio"}
            if not is_box or "checked" in at:
                self._fields.append((at["name"], at.get("value", "")))
        elif tag == "select":
            self._select, self._option = at["name"], None
        elif tag == "option" and self._select:
            if "selected" in at or self._option is None:
                self._option = at["value"]
        elif tag == "textarea":
            self._fields.append((at["name"], ""))
            self._text = []

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._fields.append((self._select, self._option or ""))
            self._select = ""
        elif tag == "textarea" and self._text is not None:
            text = "".join(self._text).removeprefix("\n").replace("\n", "\r\n")
            self._fields[-1] = (self._fields[-1][0], text)
            self._text = None

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)


def sent(page: str, action: str, **changed: str | list[str]) -> dict[str, str | list[str]]:
    """The fields of the form with this action, with some changed; several of one name are a list."""
    forms = _Forms()
    forms.feed(page)
    fields: dict[str, list[str]] = {}
    for name, value in forms.found[action]:
        fields.setdefault(name, []).append(value)
    one_or_more = {name: values[0] if len(values) == 1 else values for name, values in fields.items()}
    assert one_or_more.keys() >= changed.keys(), changed.keys() - one_or_more.keys()
    return {**one_or_more, **changed}
