"""Checkpoints and journals of searches with one thing changed and the checksums right, and searches that go on."""

import copy
import json
import zlib
from hashlib import sha256

import numpy as np
from persistence.changes import another, places
from persistence.fits import NUMBERS

from skvbem import GridSpace, StructureSearchCV, VBMixture
from skvbem.errors import SearchCheckpointError
from skvbem.search.checkpoint.checkpoint import _SEAL, _tag_of

#: What other places of JSON may hold instead.
_OTHERS = {"arrays": [], "objects": [["exact"], ["lower_bound"], ["skvbem"]]}


class SearchFile:
    """A finished search on disk: all in its checkpoint, or in the journal beside an empty one.

    That of a journal scores rows held out, so that there is a score of each split.
    """

    def __init__(self, path, *, is_journal):
        self.path, self.journal = path, path.with_name(f"{path.name}.journal")
        self.is_journal = is_journal
        self.columns = self.shapes()
        self.content = json.loads(path.read_text())
        self.content.pop("sha256")
        self.lines = [
            {"search": _tag_of(self.content["search"]), "candidate": name, "record": record}
            for name, record in self.content["candidates"].items()
        ]
        self.part = self.lines if is_journal else self.content
        self.sites = [*places(self.part)]

    def search(self):
        """The search, from where the files are."""
        model = VBMixture(n_init=1, max_iter=20, random_state=0)
        space, how = GridSpace({"n_components": [1, 2, 3]}), {"scoring": ["lower_bound", "importance"]}
        how = {"cv": 3} if self.is_journal else how | {"refit": "lower_bound"}
        search = StructureSearchCV(model, space, checkpoint=self.path, random_state=0, **how)
        return search.fit(np.nan_to_num(NUMBERS))

    def shapes(self):
        """Lengths of the columns of the results of the search."""
        return {name: len(each) for name, each in self.search().cv_results_.items()}

    def changed(self, rng):
        """Files with one thing changed, and what it is."""
        part = copy.deepcopy(self.part)
        *way, last = self.sites[rng.integers(len(self.sites))]
        parent = part
        for step in way:
            parent = parent[step]
        before = parent[last]
        parent[last] = another(before, _OTHERS, rng)
        what = f"{way}[{last!r}]: {before!r:.60} -> {parent[last]!r:.60}"
        content, lines = (self.content | {"candidates": {}}, part) if self.is_journal else (part, [])
        body = json.dumps(content).removesuffix("}")
        bodies = [json.dumps(line).encode() for line in lines]
        text = (body + _SEAL % sha256(body.encode()).hexdigest()).encode()
        return (text, b"".join(b"%08x %s\n" % (zlib.crc32(each), each) for each in bodies)), what

    def outcome(self, texts, number):
        """What becomes of files: "refused", "answers", or what is wrong."""
        self.path.write_bytes(texts[0])
        self.journal.write_bytes(texts[1])
        try:
            columns = self.shapes()
        except SearchCheckpointError:
            return "refused"
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
        return "answers" if columns == self.columns else f"{columns.items() ^ self.columns.items()}"
