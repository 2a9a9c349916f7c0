"""The built site as it lies on the disk: what each page calls itself, where it leads, and what it writes as code."""

from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

_EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}


class Page(HTMLParser):
    """One page: its anchors, its links with what they say, and the code in its text that leads nowhere."""

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.anchors, self.links, self.code, self.headings = set(), [], [], {}
        self._open, self._words = [], None
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        """Remember what is open, and what has a name or leads somewhere."""
        given = dict(attrs)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag in _EMPTY:
            return
        self._open.append((tag, given))
        if tag == "a" and given.get("href"):
            self.links.append((given["href"], self._within("article")))
        if self._words is None and (tag == "code" or tag in _HEADINGS) and self._within("article"):
            self._words = []

    def handle_endtag(self, tag):
        """Close what is open, and everything in it that was left open."""
        while self._within(tag):
            last, given = self._open.pop()
            if self._words is not None and (last == "code" or last in _HEADINGS):
                if last in _HEADINGS:
                    sections = [of["id"] for kind, of in self._open if kind == "section" and "id" in of]
                    self.headings[sections[-1] if sections else ""] = "".join(self._words).strip("#\n ")
                elif self._within(*_HEADINGS):
                    return  # words of a heading
                elif not self._within("a", "pre", "dt") and "code" in given.get("class", ""):
                    self.code.append("".join(self._words))
                self._words = None
            if last == tag:
                return

    def handle_data(self, data):
        """Text of a heading or of a piece of code."""
        if self._words is not None:
            self._words.append(data)

    def _within(self, *tags):
        return any(tag in tags for tag, _ in self._open)

    def leads_to(self):
        """(file, anchor, whether the link stands in the text) for each link that stays on the site."""
        for address, in_text in self.links:
            parts = urlsplit(address)
            if not parts.scheme and not parts.netloc:
                target = (self.path.parent / unquote(parts.path)).resolve() if parts.path else self.path
                yield target, unquote(parts.fragment), in_text


def site(folder):
    """The pages of a folder, by their paths."""
    paths = sorted(folder.resolve().rglob("*.html"))
    return {path: Page(path) for path in paths if "_static" not in path.parts}
