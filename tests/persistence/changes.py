"""Saved files with one thing changed: each number, length, type, place and text in turn."""

import copy
import json
import zipfile
from hashlib import sha256
from io import BytesIO

import numpy as np

from skvbem.persistence.archive import MEMBERS

FLOATS = (0.0, -0.0, -1.0, 1e-300, 1e300, -1e300, np.nan, np.inf, -np.inf)
WHOLE = (0, 1, -1, 2, 5, 100, 10**4, 10**6, 2**31, -(2**31), 2**62, -(2**63))


class File:
    """The parts of a saved file."""

    def __init__(self, data):
        with zipfile.ZipFile(BytesIO(data)) as members:
            header, content, self.arrays = (members.read(name) for name in MEMBERS)
        self.header, self.content = json.loads(header), json.loads(content)
        self.sites = [*places(self.content)]

    def packed(self, content, arrays):
        """The bytes of a file of these parts, with the right checksums."""
        text = json.dumps(content).encode()
        sums = {"content.json": sha256(text).hexdigest(), "arrays.bin": sha256(arrays).hexdigest()}
        out = BytesIO()
        with zipfile.ZipFile(out, "w") as members:
            for name, part in zip(MEMBERS, (json.dumps(self.header | {"sha256": sums}).encode(), text, arrays)):
                members.writestr(name, part)
        return out.getvalue()

    def changed(self, rng):
        """The bytes of a file with one thing changed, and what it is."""
        kind = rng.integers(5)
        if kind >= 3 and self.arrays:
            return self._with_a_cell(rng)
        content = copy.deepcopy(self.content)
        if kind == 2 and content["arrays"]:
            what = another_array(content["arrays"], rng)
        else:
            *way, last = self.sites[rng.integers(len(self.sites))]
            parent = content
            for step in way:
                parent = parent[step]
            before = parent[last]
            parent[last] = another(before, content, rng)
            what = f"{way}[{last!r}]: {before!r:.60} -> {parent[last]!r:.60}"
        return self.packed(content, self.arrays), what

    def _with_a_cell(self, rng):
        arrays, lines = bytearray(self.arrays), self.content["arrays"]
        sizes = [int(np.prod(shape)) * np.dtype(name).itemsize for name, shape, _ in lines]
        number = int(rng.choice(np.flatnonzero(sizes)))
        dtype, start = np.dtype(lines[number][0]), sum(sizes[:number])
        at = start + dtype.itemsize * int(rng.integers(sizes[number] // dtype.itemsize))
        before = np.frombuffer(bytes(arrays[at : at + dtype.itemsize]), dtype)[0]
        if dtype.kind == "f":
            choices = (*FLOATS, -before, before * (1 + 1e-9), before * 10, before + 1)
            value = np.array(choices[rng.integers(len(choices))], dtype).tobytes()
        elif dtype.kind in "iu":
            choices = (*WHOLE, int(before) + 1, int(before) - 1)
            value = (choices[rng.integers(len(choices))] % 2 ** (8 * dtype.itemsize)).to_bytes(dtype.itemsize, "little")
        else:
            value = rng.bytes(dtype.itemsize)
        arrays[at : at + dtype.itemsize] = value
        named = ((f"{name}.{part}", v) for name, parts in self.content["objects"] for part, v in parts)
        owner = next((where for where, v in named if v == {"array": number}), "?")
        what = f"array {number} ({owner}) byte {at - start}: {before} -> {value.hex()}"
        return self.packed(self.content, bytes(arrays)), what


def places(value, way=()):
    """The way to every place in JSON, but those of the lines of arrays."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in pairs:
        if way or key != "arrays":
            yield (*way, key)
            yield from places(part, (*way, key))


def another_array(lines, rng):
    """Change the line of an array: its type, its shape, its order; say how."""
    number = int(rng.integers(len(lines)))
    name, shape, order = lines[number]
    size, kind = np.dtype(name).itemsize, rng.integers(5)
    alike = [n for n in ("<f8", "<i8", "<u8", "<c8", "<M8[s]", "<m8[s]", "<f4", "<i4", "|b1", "|i1", "|S8", "<U2")
             if np.dtype(n).itemsize == size and n != name]  # fmt: skip
    if kind == 0 and alike:
        lines[number][0] = alike[rng.integers(len(alike))]
    elif kind == 1:
        lines[number][2] = {"C": "F", "F": "C"}[order]
    elif kind == 2 and shape:
        axis = int(rng.integers(len(shape)))
        shape[axis] = int(rng.choice([0, 1, shape[axis] + 1, max(shape[axis] - 1, 0), 2**40, -1]))
    elif kind == 3:
        lines[number][1] = [[1, *shape], [*shape, 1], shape[::-1], [int(np.prod(shape))]][rng.integers(4)]
    else:
        other = int(rng.integers(len(lines)))
        flat = [k for k, line in enumerate(lines) if line[0] == name and len(line[1]) == 1]
        same = [k for k in flat if k != number and len(shape) == 1]
        if same and shape[0]:
            other = int(rng.choice(same))
            shape[0], lines[other][1][0] = shape[0] - 1, lines[other][1][0] + 1
        else:
            lines[number], lines[other] = lines[other], lines[number]
    return f"array {number}: {[name, shape, order]} -> {lines[number]}"


def another(value, content, rng):
    """Something else in the place of a value of JSON."""
    n_arrays, n_objects = len(content["arrays"]), len(content["objects"])
    anything = [None, True, 0, -1, 2**63, 10**30, 0.5, "", "x", [], {"float": "nan"}, {"float": "-inf"}, {"tuple": []},
                {"list": []}, {"dict": []}, {"array": int(rng.integers(max(n_arrays, 1)))},
                {"object": int(rng.integers(max(n_objects, 1)))}]  # fmt: skip
    like = []
    if isinstance(value, bool):
        like = [not value] * 6
    elif isinstance(value, int):
        like = [value + 1, value - 1, -value, *WHOLE]
    elif isinstance(value, float):
        like = [-value, value * 10, value + 1, 1e308, 0.0, {"float": "inf"}]
    elif isinstance(value, str):
        like = [value + "x", value[::-1], value.upper(), content["objects"][rng.integers(n_objects)][0]] * 3
    elif isinstance(value, list) and value:
        at = int(rng.integers(len(value)))
        like = [value[:at] + value[at + 1 :], [*value, value[at]], value[::-1], value[1:] + value[:1]] * 3
    elif isinstance(value, dict) and len(value) == 1:
        (kind, _), n = *value.items(), {"array": n_arrays, "object": n_objects}
        if kind in n:
            like = [{kind: int(k)} for k in rng.integers(0, n[kind], 10)]
        like += [{"list": [value]}, {"tuple": [value, value]}]
    choices = [*anything, *like, *like]
    return choices[rng.integers(len(choices))]
