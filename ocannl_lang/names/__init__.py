"""Names and static types: what every name means, and what the text of a module alone shows to be wrong.

`resolve.resolve` gives the `Names` of a module, `static_types.check_types` checks it; `interface` is what modules show to
each other, `builtins` what needs no import. Read on in `bodies.py` (what names mean inside a definition),
`scopes.py`, `notation.py` (labels), `expression_types.py`, `calls.py`.
"""
