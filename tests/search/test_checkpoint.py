"""Checkpoints: exact, refused when damaged or of another search, and valid after a fault at any moment."""

import errno
import hashlib
import json
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, make_scorer

from skvbem import DAG, GridSpace, StructureSearchCV, VBMixture
from skvbem.errors import SearchCheckpointError, SearchWarning
from skvbem.search.checkpoint import checkpoint as checkpoint_module
from skvbem.search.checkpoint import journal
from skvbem.search.checkpoint.checkpoint import Checkpoint
from skvbem.search.checkpoint.fingerprints import content, is_lasting
from skvbem.search.checkpoint.journal import Journal, lines_of, locked
from skvbem.search.execution.jobs import Record, digest

FINGERPRINT = {"estimator": "some.Model", "parameter 'n_init'": "int:3", "data": "a" * 32}
RECORDS = {
    "0a": Record({"score": -12.5}, {"score": 0.25}, n_free_parameters=7, fit_seconds=(0.5,), score_seconds=(0.1,)),
    "0b": Record(
        {"score": math.nan, "other": math.inf}, {}, {"score": (1.0, -math.inf)}, None, (0.1, 0.2), (1e-9, 0.0)
    ),
    "0c": Record({"score": -0.0}, n_free_parameters=2**70, doubts=("ais: too few.", "ais: too short.")),
}


def opened(path, **changes):
    return Checkpoint.opened(path, lambda: FINGERPRINT | changes)


def known_at(path, **changes):
    """The records of a checkpoint, which it still holds afterwards."""
    with opened(path, **changes) as checkpoint:
        return dict(checkpoint.known)


def written(path, records=RECORDS):
    """A checkpoint of some records, finished."""
    with opened(path) as checkpoint:
        for name, record in records.items():
            checkpoint.note(name, record, is_kept=False)
    return path


def interrupted(path, records=RECORDS, first=()):
    """A checkpoint as it is on disk in the middle of a search: some records in the file, the others in its journal."""
    written(path, {name: records[name] for name in first})
    with opened(path) as checkpoint:
        for name, record in records.items():
            if name not in first:
                assert checkpoint.keep(name, record)
        texts = path.read_bytes(), journal_of(path).read_bytes()
    path.write_bytes(texts[0])
    journal_of(path).write_bytes(texts[1])
    return path


def journal_of(path):
    return path.with_name(f"{path.name}.journal")


def bits(record):
    """A record with its numbers as bits, so that NaN equals NaN and -0.0 does not equal 0.0."""

    def exact(value):
        if isinstance(value, dict):
            return {name: exact(item) for name, item in value.items()}
        if isinstance(value, (tuple, list)):
            return [exact(item) for item in value]
        return "nan" if isinstance(value, float) and math.isnan(value) else repr(value)

    return {field.name: exact(getattr(record, field.name)) for field in fields(record)}


def all_bits(records):
    return {name: bits(record) for name, record in records.items()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "search.json"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A checkpoint and its journal in the middle of a search."""
    path = interrupted(tmp_path_factory.mktemp("texts") / "search.json", first=("0a",))
    return path.read_bytes(), journal_of(path).read_bytes()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("place") / "search.json"


def laid_at(path, texts):
    path.write_bytes(texts[0])
    journal_of(path).write_bytes(texts[1])


# What is written is read ----------------------------------------------------------------------------------------------


def test_records_come_back_exactly(path):
    assert all_bits(known_at(written(path))) == all_bits(RECORDS)


@given(number=st.floats(), n=st.none() | st.integers(0, 10**30), name=st.text(max_size=5))
@example(number=5e-324, n=0, name='"},\n\x00\ud800')
def test_any_number_comes_back_exactly(number, n, name):
    record = Record({name: number}, {name: abs(number)}, {name: (number, -number)}, n, (abs(number),), (0.0,))
    entry = json.loads(checkpoint_module._entry("tag", "0a", record))["record"]
    assert bits(checkpoint_module._decoded(entry)) == bits(record)


def test_nothing_of_a_record_is_left_out():
    """But for the failure: a candidate that failed is not written."""
    assert {*checkpoint_module._encoded(RECORDS["0a"]), "failure"} == {field.name for field in fields(Record)}


def test_the_file_is_plain_json_and_alone_in_the_end(path):
    entry = json.loads(written(path).read_text(), parse_constant=pytest.fail)
    assert list(entry) == ["format", "search", "candidates", "sha256"]
    assert entry["search"]["version of numpy"] == np.__version__
    assert os.listdir(path.parent) == [path.name]


def test_workers_write_at_once(path):
    with opened(path) as checkpoint:
        keep = pickle.loads(pickle.dumps(checkpoint.keep))
        assert keep("0a", RECORDS["0a"])
        assert len(journal_of(path).read_bytes().splitlines()) == 1
        checkpoint.note("0a", RECORDS["0a"], is_kept=True)
        assert len(journal_of(path).read_bytes().splitlines()) == 1


def test_failed_candidates_are_tried_again(path):
    assert known_at(written(path, {"0a": Record({"score": 0.0}, failure="killed")})) == {}


def test_a_journal_is_taken_in_at_the_next_start(path):
    interrupted(path, first=("0b",))
    assert all_bits(known_at(path)) == all_bits(RECORDS)
    assert not journal_of(path).exists()
    assert all_bits(known_at(path)) == all_bits(RECORDS)


def test_a_long_journal_is_taken_in_now_and_then(path, monkeypatch):
    """So often that writing n records costs a small multiple of their length."""
    monkeypatch.setattr(checkpoint_module, "TUNING", replace(checkpoint_module.TUNING, shared_bytes=2_000))
    lengths, write = [], checkpoint_module.write_atomically
    monkeypatch.setattr(
        checkpoint_module, "write_atomically", lambda *args: (lengths.append(len(args[1])), write(*args))
    )
    with opened(path) as checkpoint:
        for k in range(1000):
            record = Record({"score": k / 3})
            checkpoint.note(f"{k:x}", record, checkpoint.keep(f"{k:x}", record) if k % 2 else False)
    assert {name: record.values["score"] for name, record in known_at(path).items()} == {
        f"{k:x}": k / 3 for k in range(1000)
    }
    assert 8 < len(lengths) < 20
    assert sum(lengths) < 6 * lengths[-1]


def test_none_keeps_nothing():
    with Checkpoint.opened(None, pytest.fail) as checkpoint:
        checkpoint.note("0a", RECORDS["0a"], is_kept=False)
        assert checkpoint.keep is None
        assert checkpoint.known == {}


def test_a_link_stays_a_link(path, tmp_path):
    written(path)
    link = tmp_path / "link"
    link.symlink_to(path)
    assert len(known_at(link)) == 3
    assert link.is_symlink()


# Refused --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"data": "b" * 32}, "differs in: data. Give"),
        ({"parameter 'n_init'": "int:4", "estimator": "x"}, "differs in: estimator, parameter 'n_init'. Give"),
        ({"parameter 'new'": "int:4"}, "differs in: parameter 'new'. Give"),
    ],
)
def test_of_another_search(path, changes, told):
    text = written(path).read_bytes()
    with pytest.raises(SearchCheckpointError, match=re.escape(told)), opened(path, **changes):
        pass
    assert path.read_bytes() == text
    assert os.listdir(path.parent) == [path.name]


def test_of_another_version(path, monkeypatch):
    written(path)
    monkeypatch.setattr("skvbem.__version__", "77.7")
    with pytest.raises(SearchCheckpointError, match=r"version of skvbem \(.* there, 77\.7 here\)"):
        known_at(path)


def test_a_journal_of_another_search(path, tmp_path):
    interrupted(path)
    other = tmp_path / "other.json"
    with opened(other, data="b" * 32) as checkpoint:
        checkpoint.keep("0a", RECORDS["0a"])
        journal = journal_of(other).read_bytes()
    journal_of(path).write_bytes(journal)
    with pytest.raises(SearchCheckpointError, match=r"journal .* of another search"):
        known_at(path)


def test_a_journal_alone(path):
    interrupted(path).unlink()
    with pytest.raises(SearchCheckpointError, match="is missing, but its journal"):
        known_at(path)


def test_any_flipped_bit_of_the_file_is_refused(texts, place):
    for at in range(len(texts[0])):
        damaged = bytearray(texts[0])
        damaged[at] ^= 1 << at % 8
        with pytest.raises(SearchCheckpointError, match="damaged"):
            _read(place, bytes(damaged), b"")


@given(data=st.data())
def test_a_damaged_journal_is_refused_or_costs_its_last_line(texts, place, data):
    damaged = bytearray(texts[1])
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] ^= data.draw(st.integers(1, 255))
    try:
        known = _read(place, texts[0], bytes(damaged))
    except SearchCheckpointError as error:
        assert "damaged" in str(error)  # noqa: PT017
    else:
        assert at == len(damaged) - 1
        assert all_bits(known) == all_bits({name: RECORDS[name] for name in ("0a", "0b")})


@given(data=st.data())
def test_a_truncated_file_is_refused_and_a_truncated_journal_is_what_was_there_before(texts, place, data):
    with pytest.raises(SearchCheckpointError, match="damaged"):
        _read(place, texts[0][: data.draw(st.integers(0, len(texts[0]) - 1))], b"")
    known = _read(place, texts[0], texts[1][: data.draw(st.integers(0, len(texts[1])))])
    assert {"0a"} <= set(known)
    assert all_bits(known).items() <= all_bits(RECORDS).items()


@given(junk=st.binary(max_size=300))
def test_junk_is_refused(texts, place, junk):
    with pytest.raises(SearchCheckpointError):
        _read(place, junk, b"")
    with pytest.raises(SearchCheckpointError):
        _read(place, texts[0] + junk + b".", b"")
    try:
        known = _read(place, texts[0], junk)
    except SearchCheckpointError:
        assert b"\n" in junk
    else:
        assert b"\n" not in junk
        assert list(known) == ["0a"]


def _read(place, text, journal):
    laid_at(place, (text, journal))
    checkpoint = object.__new__(checkpoint_module.FileCheckpoint)
    checkpoint._path, checkpoint._fingerprint = str(place), {**FINGERPRINT, **checkpoint_module._versions()}
    checkpoint._tag = checkpoint_module._tag_of(checkpoint._fingerprint)
    return checkpoint._read()


_ENTRY = json.dumps(
    checkpoint_module._encoded(Record({"score": -1.5}, {"score": 0.25}, {}, 3, (0.5,), (0.5,), inference="exact"))
)


def test_an_entry_that_a_search_wrote_is_read():
    assert checkpoint_module._decoded(json.loads(_ENTRY)).values == {"score": -1.5}


@pytest.mark.parametrize(
    "candidates",
    [
        '"none"',
        "[1, 2]",
        '{"0a": null}',
        '{"0a": {}}',
        '{"0a": %s}' % ("[" * 100_000),
        '{"0a": {"values": 1, "errors": {}, "splits": {}, "n_free_parameters": 1}}',
        '{"0a": {"values": {"score": "code"}, "errors": {}, "splits": {}, "n_free_parameters": 1}}',
        '{{"0a": {}}}'.format(_ENTRY.replace("-1.5", "1" + "0" * 400)),
        '{{"0a": {}}}'.format(_ENTRY.replace(": 3", ": -3")),
        '{{"0a": {}}}'.format(_ENTRY.replace(": 3", ": 3.5")),
        '{{"0a": {}}}'.format(_ENTRY.replace("0.25", "-0.25")),
        '{{"0a": {}}}'.format(_ENTRY.replace("exact", "hopeful")),
        '{{"0a": {}}}'.format(_ENTRY.replace("[]", '"none"')),
    ],
)
def test_content_with_a_right_checksum_that_no_search_wrote(path, candidates):
    whole = json.loads(written(path, {}).read_text())
    form, search = json.dumps(whole["format"]), json.dumps(whole["search"])
    body = f'{{"format": {form}, "search": {search}, "candidates": {candidates}'
    path.write_text(body + checkpoint_module._SEAL % hashlib.sha256(body.encode()).hexdigest())
    with pytest.raises(SearchCheckpointError, match="not what a search writes"):
        known_at(path)


@pytest.mark.parametrize("values", [{}, {"other": -1.0}, {"lower_bound": -1.0, "other": 0.0}])
def test_a_record_of_other_scores(values, path):
    """With a right checksum."""
    search = StructureSearchCV(
        VBMixture(n_init=1), GridSpace({"n_components": [1, 2]}), scoring="lower_bound", checkpoint=path, random_state=0
    )
    X = np.random.default_rng(0).normal(size=(20, 2))
    search.fit(X)
    whole = json.loads(path.read_text())
    del whole["sha256"]
    next(iter(whole["candidates"].values()))["values"] = values
    body = json.dumps(whole).removesuffix("}")
    path.write_text(body + checkpoint_module._SEAL % hashlib.sha256(body.encode()).hexdigest())
    with pytest.raises(SearchCheckpointError, match="this search needs"):
        search.fit(X)


def test_a_pickle_is_not_unpickled(path):
    path.write_bytes(pickle.dumps(_Bomb()))
    with pytest.raises(SearchCheckpointError, match="is no checkpoint"):
        known_at(path)


class _Bomb:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(OSError, match=f"{re.escape(str(path))}.* must be a file"), opened(path):
            pass
    with pytest.raises(FileNotFoundError, match="nowhere"), opened(tmp_path / "nowhere" / "search.json"):
        pass


# Fingerprints ---------------------------------------------------------------------------------------------------------


VALUES = """
from functools import partial
from sklearn.metrics import get_scorer
from skvbem import DAG
from skvbem.spaces.priors import coerce_prior
from skvbem.search.checkpoint.fingerprints import content
from skvbem.search.execution.jobs import digest

def score(model, X, y=None):
    return {"a", "bb", "c"} and (lambda: model.x)()

values = [
    {"a", "b", "cc"}, {"one": [1, None], "two": ("x", b"y")}, get_scorer("roc_auc"), score, partial(score, y=3),
    coerce_prior("uniform"), 1.5, DAG.from_string("[a][b|a]"),
]
texts = [*map(content, values), digest({"structure": "[h0][h1][y|h0:h1]", "latents": {"h0": 2, "h1": 2}})]
"""


def test_content_is_the_same_in_another_process():
    """With another seed of hashes, and other addresses."""
    here = {"__name__": "__main__"}
    exec(VALUES, here)
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    there = subprocess.run(
        [sys.executable, "-P", "-c", f"{VALUES}\nprint(texts)"],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert there == f"{here['texts']}\n"
    assert all(map(is_lasting, here["texts"]))


def test_content_tells_apart():
    def one(model, X, y=None):
        return model.a

    def other(model, X, y=None):
        return model.b

    def with_default(model, X, y=1):
        return model.a

    other.__qualname__ = with_default.__qualname__ = one.__qualname__
    long = np.arange(3000.0)
    values = [
        *(one, other, with_default, partial(one, y=1), partial(one, y=2), [enclosing(1), enclosing(2)]),
        *(
            get_scorer("accuracy"),
            get_scorer("recall"),
            make_scorer(one),
            LogisticRegression(C=2),
            LogisticRegression(),
        ),
        *(1, 1.0, True, "1", b"1", None, (1, "2"), (1, 2), {1: 2}, {1, 2}, long, long + (long == 1500), dict, list),
        *(DAG.from_string("[a][b|a]"), DAG.from_string("[b][a|b]"), DAG(["1", "2"], {}), DAG([1, 2], {})),
        *(np.random.RandomState(0), np.random.RandomState(1), one.__get__(3), one.__get__(4)),
    ]
    assert len({content(value) for value in values}) == len(values)
    assert content(enclosing(1)) != content(enclosing(2))
    assert all(is_lasting(content(value)) for value in values)


def enclosing(x):
    return lambda model, X, y=None: model.value_ + x


def test_content_of_what_cannot_be_told_apart_elsewhere():
    lock, other = threading.Lock(), threading.Lock()
    assert content(lock) == content(lock) != content(other)
    assert not is_lasting(content({"lock": lock}))
    itself = []
    itself.append(itself)
    assert not is_lasting(content(itself))


def test_one_candidate_has_one_name():
    first = {"structure": "[h0][h1][y|h0:h1][z|h1]", "latents": {"h0": 2, "h1": 3}}
    second = {"latents": {"h1": 2, "h0": 3}, "structure": "[z|h0][y|h1:h0][h1][h0]"}
    assert digest(first) == digest(second)
    assert digest({"structure": DAG(["a", "b"], {})}) == digest({"structure": DAG(["b", "a"], {})})
    assert len({digest({"x": x}) for x in (1, 1.0, True, "1", (1,), None)}) == 6


def test_a_search_that_cannot_be_known_again_is_refused(path):
    with pytest.raises(SearchCheckpointError, match="its score 'a' cannot be pickled"):
        known_at(path, **{"score 'a'": content(threading.Lock())})


# Faults ---------------------------------------------------------------------------------------------------------------


def test_one_search_at_a_time(path):
    with (
        opened(path),
        pytest.raises(SearchCheckpointError, match=rf"in use by another search \(process {os.getpid()}\)"),
        opened(path),
    ):
        pass
    known_at(path)


def test_the_lock_goes_away_with_the_process_that_dies(path):
    reading, writing = os.pipe()
    if not (pid := os.fork()):
        with locked(f"{path}.lock"):
            os.write(writing, b".")
            signal.pause()
    os.read(reading, 1)
    with pytest.raises(SearchCheckpointError, match=f"process {pid}"), opened(path):
        pass
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(reading)
    os.close(writing)
    assert known_at(path) == {}


def test_the_torn_line_of_a_killed_worker_is_cut_off_by_the_next(path):
    with opened(path) as checkpoint:
        checkpoint.keep("0a", RECORDS["0a"])
        with open(journal_of(path), "ab") as journal:
            journal.write(b'0123abcd {"search": "torn')
        checkpoint.keep("0b", RECORDS["0b"])
        assert [body is not None for _, body in lines_of(journal_of(path).read_bytes())] == [True, True]
    assert list(known_at(path)) == ["0a", "0b"]


def test_many_processes_append_to_one_journal(path):
    """Every line is there, whole, though writers are killed meanwhile."""
    journal = Journal.made_at(str(path))
    bodies = [b"%d " % k + b"x" * (k % 5000) for k in range(150)]
    children = []
    for child in range(4):
        if not (pid := os.fork()):
            for k, body in enumerate(bodies):
                journal.append(b"%d %s" % (child, body))
                if child == 3 and k == 100:
                    os.kill(os.getpid(), signal.SIGKILL)
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    found = [body for _, body in lines_of(path.read_bytes())]
    for child, n in enumerate([150, 150, 150, 101]):
        assert [body for body in found if body.startswith(b"%d " % child)] == [
            b"%d %s" % (child, body) for body in bodies[:n]
        ]
    assert len(found) == 3 * 150 + 101


def test_another_journal_in_its_place_is_left_alone(path):
    """Workers that outlive their search by a second do not write into the next one."""
    with opened(path) as checkpoint:
        late = checkpoint.keep
    with opened(path) as checkpoint:
        held_open = open(journal_of(path), "rb")  # noqa: SIM115 -- so that its inode is not taken again
        journal_of(path).unlink()
        journal_of(path).touch()
        assert not late("0a", RECORDS["0a"])
        assert not checkpoint.keep("0a", RECORDS["0a"])
        assert journal_of(path).read_bytes() == b""
        held_open.close()


def test_workers_of_another_machine_leave_the_writing_to_the_search(path, monkeypatch):
    with opened(path) as checkpoint:
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(journal, "machine", lambda: "elsewhere")
            assert not checkpoint.keep("0a", RECORDS["0a"])
        checkpoint.note("0a", RECORDS["0a"], is_kept=False)
        assert journal_of(path).stat().st_size > 0
    assert list(known_at(path)) == ["0a"]


@pytest.mark.parametrize("n_written", [0, 17])
def test_a_full_disk_is_warned_of_once_and_costs_nothing_that_was_written(path, monkeypatch, n_written):
    written(path, {"0a": RECORDS["0a"]})
    write = os.write

    def full(descriptor, text):
        if not n_written:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, text[:n_written])

    with pytest.warns(SearchWarning, match="could not be written .*pace left") as caught:  # noqa: PT031, SIM117
        with opened(path) as checkpoint:
            checkpoint.keep("0b", RECORDS["0b"])
            with monkeypatch.context() as patched:
                patched.setattr(journal.os, "write", full)
                assert not checkpoint.keep("0c", RECORDS["0c"])
                checkpoint.note("0c", RECORDS["0c"], is_kept=False)
                checkpoint.note("0d", RECORDS["0c"], is_kept=False)
            assert len(journal_of(path).read_bytes().splitlines()) == 1
    assert len(caught) == 1
    assert sorted(known_at(path)) == ["0a", "0b", "0c", "0d"]  # the disk had room again in the end


def test_a_disk_that_is_full_at_the_start_is_named(path, monkeypatch):
    """The search does not begin, and leaves nothing behind."""
    monkeypatch.setattr(journal.os, "fsync", _raise_no_space)
    with pytest.raises(OSError, match=f"No space left on device: '{path}'"), opened(path):
        pass
    assert os.listdir(path.parent) == []
    monkeypatch.setattr(journal.os, "write", _raise_no_space)
    with pytest.raises(OSError, match=f"No space left on device: '{path}'"), opened(path):
        pass
    assert os.listdir(path.parent) == []


def test_a_disk_that_stays_full(path, monkeypatch):
    written(path, {"0a": RECORDS["0a"]})
    with pytest.warns(SearchWarning, match="could not be written"), opened(path) as checkpoint:  # noqa: PT031
        checkpoint.keep("0b", RECORDS["0b"])
        text = path.read_bytes()
        monkeypatch.setattr(journal.os, "fsync", _raise_no_space)
    assert path.read_bytes() == text
    assert sorted(os.listdir(path.parent)) == [path.name, journal_of(path).name]
    monkeypatch.undo()
    assert list(known_at(path)) == ["0a", "0b"]


def _raise_no_space(*args):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("moment", ["write", "fsync", "replace", "ftruncate", "unlink"])
def test_a_crash_at_any_step_of_taking_the_journal_in(path, moment):
    """The process dies before a step: what was on disk stays valid, and nothing is lost."""
    interrupted(path, first=("0a",))
    if not (pid := os.fork()):
        with opened(path) as checkpoint:
            checkpoint.keep("0d", RECORDS["0c"])
            setattr(journal.os, moment, lambda *args, **kwargs: os._exit(9))
        os._exit(0)
    os.waitpid(pid, 0)
    assert set(known_at(path)) == {"0a", "0b", "0c", "0d"}
    assert os.listdir(path.parent) == [path.name]


def test_a_folder_that_is_removed(tmp_path):
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / "search.json"
    with pytest.warns(SearchWarning, match="could not be written"), opened(path) as checkpoint:  # noqa: PT031
        (tmp_path / "folder").rename(tmp_path / "gone")
        assert not checkpoint.keep("0a", RECORDS["0a"])
        checkpoint.note("0a", RECORDS["0a"], is_kept=False)
