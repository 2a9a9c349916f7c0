"""Errors in files of networks of other programs."""

TESTS = ("formats/test_network_files.py", "formats/test_bif.py")

ERRORS = {
    "states of a node run slowest in every format": [('if row.kind in ("rows", "weights"):', "if not row:")],
    "entities of XML are read": [
        ("parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse", "parser.SkippedEntityHandler = refuse")
    ],
    "entities of XML that are not declared are nothing": [
        ("parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse", "parser.EntityDeclHandler = refuse")
    ],
    "attributes of XML may be declared without end": [("if len(declared) > _MAX_DECLARED or", "if")],
    "defaults of attributes of XML may be long": [('or len(default or "") > _MAX_DEFAULT', "")],
    "names in XML are written as they are": [("return escape(name)", "return name")],
    "blanks at the ends of names in XML are part of them": [
        ('"".join(self.pieces).strip(" \\t\\n\\r")', '"".join(self.pieces)')
    ],
    "weights are probabilities": [('are_weights = row.kind == "weights" and total > 0', "are_weights = False")],
    "any row is divided by its sum": [('are_weights = row.kind == "weights" and total > 0', "are_weights = total > 0")],
    "DSL forgets the order of nodes": [("            self.declared.reorder(position, order)", "            continue")],
    "DSL has children before their parents": [
        (
            'parts, nodes = ["net unknown\\n{\\n"], network.dag.topological_order()',
            'parts, nodes = ["net unknown\\n{\\n"], network.dag.nodes',
        )
    ],
    "the sizes of tables are not looked at": [
        ("if (total := sum(cells.values())) > max_cells:", "if not (total := sum(cells.values())):")
    ],
    "a default that is a whole table is a row": [("is_row = len(row.numbers) == n_states", "is_row = True")],
    "compressed paths get plain text": [('if os.fsdecode(path).endswith(".gz") else data', "if not data else data")],
    "a backslash in a string ends nothing": [
        ("_ESCAPED = re.compile(r'\\\\([\"\\\\])')", "_ESCAPED = re.compile('never')")
    ],
}
