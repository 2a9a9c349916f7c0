"""The algorithm: one loop for ML, MAP and VB, many starts at once. Models meet it in `skvbem.ascent.Ascent`."""
