"""Syntax highlighting for editors, generated from the compiler's own tables, so that it cannot drift from the language.

`python -m ocannl_lang.syntax.highlighting` writes the files of `files()` into the folder `editors/` of a checkout.
`textmate()` is the TextMate grammar, of which VS Code and many other editors make use; the syntax file of Vim is made
in `highlighting_vim.py`, and `highlighting_terms.py` says how each terminal of the grammar is shown.

A TextMate grammar matches line by line: a region begins and ends with a pattern and has patterns of its own, of which
the leftmost match wins, the first listed among equals. Types, axes notation and the heads of definitions are such
regions. Open brackets end, as for the parser, where a line starts at the margin.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ocannl_lang.names.builtins import BUILTINS, TYPE_NAMES
from ocannl_lang.syntax.highlighting_terms import SCOPES, check_tables, keyword_scopes, pattern, words
from ocannl_lang.syntax.highlighting_vim import vim
from ocannl_lang.syntax.tokens import PRECISIONS

Rule = dict[str, Any]

# A bracket ends with its own sign, before that of another, and before a line that starts something new.
_NEW_LINE = r"^(?=[^\s)\]}#])"


# ---------------------------------------------------------------- rules


def _any_of(names: list[str]) -> str:
    return rf"\b(?:{'|'.join(names)})\b"


def _scoped(scope: str) -> str:
    return f"{scope}.ocn"


def _captures(*scopes: str | Rule | None) -> Rule:
    """Scopes (or rules) of the groups 1, 2, …"""
    numbered = enumerate(scopes, 1)
    return {str(i): {"name": _scoped(s)} if isinstance(s, str) else s for i, s in numbered if s is not None}


def _match(scope: str, regex: str) -> Rule:
    return {"name": _scoped(scope), "match": regex}


def _match_groups(regex: str, *scopes: str | Rule | None) -> Rule:
    return {"match": regex, "captures": _captures(*scopes)}


def _region(begin: str, end: str, patterns: list[Rule], *, starts: Rule, ends: Rule | None = None) -> Rule:
    rule: Rule = {"begin": begin, "beginCaptures": starts, "end": end, "patterns": patterns}
    return rule | ({"endCaptures": ends} if ends else {})


def _use(*names: str) -> list[Rule]:
    return [{"include": f"#{name}"} for name in names]


def _sign(*terminals: str) -> Rule:
    """A rule for signs of one scope."""
    return _match(SCOPES[terminals[0]], pattern(*terminals))


def _bracket(begin: str, kind: str, patterns: list[Rule], *before: str | Rule | None) -> Rule:
    """A region in brackets; the last group of `begin` is the opening one, `before` are the scopes of the others."""
    sign = {"round": r"\)", "square": r"\]", "curly": r"\}"}[kind]
    others = "".join(s for s in (")", "]", "}") if s != sign[-1]).replace("]", r"\]")
    scope = f"punctuation.bracket.{kind}"
    end = rf"({sign})|(?=[{others}])|{_NEW_LINE}"
    return _region(begin, end, patterns, starts=_captures(*before, scope), ends=_captures(scope))


# ---------------------------------------------------------------- the grammar


def textmate() -> Rule:
    """The TextMate grammar as data for JSON."""
    check_tables()
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "Ocn",
        "scopeName": "source.ocn",
        "fileTypes": ["ocn"],
        "patterns": _use("statement"),
        "repository": {
            "statement": {"patterns": _statement()},
            "expression": {"patterns": _expression()},
            "comment": {"patterns": _comment()},
            "string": {"patterns": _string()},
            "number": {"patterns": _number()},
            "keyword": {"patterns": [_match(scope, _any_of(found)) for scope, found in keyword_scopes().items()]},
            "brackets": {"patterns": _brackets()},
            "braces": {"patterns": _braces()},
            "operator": {"patterns": _operators()},
            "parameters": {"patterns": _parameters()},
            "annotation": _annotation(),
            "result": _result(),
            "type": {"patterns": _type()},
            "type-axes": {"patterns": _type_axes()},
            "axes": {"patterns": _axes()},
        },
    }


def _statement() -> list[Rule]:
    name = pattern("NAME")
    names = f"(?:{name})(?:[ \\t]*\\.[ \\t]*(?:{name}))*"
    at_margin = r"(?:^|(?<=;)[ \t]*)"
    at_start = r"(?:^|(?<=[:;]))[ \t]*"
    head = [*_use("comment", "result"), *_heads()]
    end_of_head = rf"(:)|(=)|$|{_NEW_LINE}"
    colon_or_equal = _captures(SCOPES["_COLON"], SCOPES["_EQUAL"])
    end_of_line = r"(?=[;#])|$"
    functions = "|".join(words("FN", "OP", "CD", "ROUTINE"))
    definition = _captures(SCOPES["OP"], "entity.name.function")
    declared = [*_use("comment", "annotation"), _match("variable.other.definition", name), _sign("_COMMA")]
    value = _region("=(?!=)", r"(?=[,;#])|$", _use("expression"), starts={"0": {"name": _scoped(SCOPES["_EQUAL"])}})
    imported = [
        *_use("comment"),
        _match(SCOPES["_AS"], _any_of(words("IMPORT", "FROM", "_AS"))),
        _match("variable.other.import", name),
        _sign("_COMMA"),
    ]
    foreign = [
        *_use("comment", "string", "result"),
        _match_groups(rf"\b(as)\b[ \t]+({name})", SCOPES["_AS"], "entity.name.function"),
        _bracket(r"(\()", "round", _use("parameters")),
    ]
    return [
        *_use("comment"),
        _region(rf"\b({functions})\b[ \t]+({name})", end_of_head, head, starts=definition, ends=colon_or_equal),
        _region(f"^({pattern('MAIN')})", end_of_head, head, starts=_captures(SCOPES["MAIN"]), ends=colon_or_equal),
        _match_groups(f"^({pattern('TEST')})", SCOPES["TEST"]),
        _region(
            rf"\b({'|'.join(words('IMPORT', 'FROM'))})\b[ \t]+({names})",
            end_of_line,
            imported,
            starts=_captures(SCOPES["FROM"], {"patterns": [_match("entity.name.namespace", name), _sign("_DOT")]}),
        ),
        _region(
            rf"\b({'|'.join(words('EXTERN'))})\b(?:[ \t]+({pattern('_PY')}))?",
            end_of_line,
            foreign,
            starts=_captures(SCOPES["EXTERN"], SCOPES["_PY"]),
        ),
        *(
            _region(begin, rf"(?=[=;#])|$|{_NEW_LINE}", declared, starts=_captures(SCOPES["LET"]))
            for begin in (
                rf"\b({'|'.join(words('LET', 'VAR'))})\b",
                f"{at_start}({pattern('STATE')})",
                f"{at_margin}({pattern('DATA')})",
            )
        ),
        *(
            _region(begin, end_of_line, [value, *declared], starts=_captures(SCOPES["DIM"]))
            for begin in (f"{at_start}({pattern('DIM', 'ROW')})", f"{at_margin}({pattern('BASIS')})")
        ),
        _match_groups(f"{at_start}({pattern('FORWARD', 'BACKWARD')})", SCOPES["FORWARD"]),
        _match(SCOPES["ASSIGN"], pattern("ASSIGN")),
        *_use("expression"),
    ]


def _heads() -> list[Rule]:
    """What stands between the name of a definition and its body."""
    slot = [_match("variable.parameter.slot", pattern("NAME")), _sign("_SEMICOLON")]
    return [
        _bracket(r"(\{)", "curly", slot),
        _bracket(r"(\[)", "square", _use("parameters")),
        _bracket(r"(\()", "round", _use("parameters")),
    ]


def _expression() -> list[Rule]:
    name = pattern("NAME")
    functions = [b.name for b in BUILTINS.values() if b.callable]
    values = [b.name for b in BUILTINS.values() if not b.callable]
    # A point alone, and not one of the two of a range.
    dot = rf"(\.)(?<!\.\.)(?!\.)[ \t]*({name})(?!\w)"
    arguments = r"(?=[ \t]*(?:\[[^\[\]]*\]|\{[^{}]*\})*\()"
    return [
        *_use("comment", "string", "number", "keyword"),
        _match_groups(f"{dot}{arguments}", SCOPES["_DOT"], "entity.name.function.call"),
        _match_groups(dot, SCOPES["_DOT"], "variable.other.property"),
        *_use("braces", "brackets"),
        _match("support.function.builtin", _any_of(functions)),
        _match("variable.language.builtin", _any_of(values)),
        _match("entity.name.function.call", _whole(name) + arguments),
        _match("variable.other", _whole(name)),
        *_use("operator"),
    ]


def _comment() -> list[Rule]:
    code = _match("markup.inline.raw", "`[^`]*`")
    return [
        {"name": _scoped("comment.line.documentation"), "begin": "##(?!#)", "end": "$", "patterns": [code]},
        _match("comment.line.number-sign", "#.*$"),
    ]


def _string() -> list[Rule]:
    """Strings with escapes and with expressions in braces, which never reach over the end of their line."""
    inner = r'"(?:[^"\\]|\\.)*"'
    content = rf'[^{{}}"]|{inner}|\{{(?:[^{{}}"]|{inner})*\}}'
    brace, form = "punctuation.section.interpolation", "constant.other.placeholder"
    expression: Rule = {"name": _scoped("meta.embedded.expression"), "patterns": _use("expression")}
    within = [
        _match("constant.character.escape", r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.|$)|\{\{|\}\}"),
        {
            "name": _scoped("meta.interpolation"),
            **_match_groups(
                rf'(\{{)((?:{content})+?)(?:(:)([^{{}}"()\[\]]*))?(\}})',
                brace,
                expression,
                SCOPES["_COLON"],
                form,
                brace,
            ),
        },
    ]
    marks = ("punctuation.definition.string.begin", "punctuation.definition.string.end")
    return [
        {"name": _scoped(f"{SCOPES['STRING']}.{kind}")}
        | _region(f"({quotes})", end, within, starts=_captures(marks[0]), ends=_captures(marks[1]))
        for kind, quotes, end in (("triple", '"""', '(""")'), ("double", '"', r'(")|(?<!\\)(?=\n)'))
    ]


def _number() -> list[Rule]:
    return [_match(SCOPES[name], _after_no_letter(pattern(name))) for name in ("FLOAT", "INT")]


def _brackets() -> list[Rule]:
    named = _match_groups(rf"(?<!\w)({pattern('NAME')})[ \t]*(=)(?![=>+])", "variable.parameter", SCOPES["_EQUAL"])
    within = [*_use("comment", "string"), named, *_use("expression")]
    return [_bracket(r"(\()", "round", within), _bracket(r"(\[)", "square", within)]


def _braces() -> list[Rule]:
    """Axes notation and parameters. A brace after a name or a closing bracket is notation, unless the name is a
    keyword; elsewhere it is a parameter where it looks like one.
    """
    keywords = [word for found in keyword_scopes().values() for word in found]
    behind = r"(?<=[\w)\]}])" + "".join(rf"(?<!\b{word})" for word in keywords)
    name = pattern("NAME")
    value = _match(SCOPES["_EQUAL"], "=")
    parameter = [*_use("annotation"), value, *_use("expression")]
    return [
        _bracket(rf"({pattern('EINSUM')})[ \t]*(\{{)", "curly", _use("axes"), SCOPES["EINSUM"]),
        _bracket(rf"{behind}(\{{)", "curly", _use("axes")),
        # The name is matched again inside, so that the bracket is the last group.
        _bracket(
            rf"(\{{)(?=[ \t]*(?:{name})[ \t]*(?:[:}}]|=(?![>+])|$))",
            "curly",
            [_match_groups(rf"(?<=\{{)[ \t]*({name})", "entity.name.variable.parameter"), *parameter],
        ),
        _bracket(r"(\{)", "curly", _use("axes")),
    ]


def _operators() -> list[Rule]:
    return [
        _sign("_PIPE"),
        _sign("_ARROW"),
        _sign("COMPARE"),
        _sign("DOTDOT"),
        _sign("MULOP", "POWER", "PLUS", "MINUS", "STAR"),
        _sign("_EQUAL"),
        _sign("_COMMA", "_SEMICOLON", "_COLON"),
    ]


# ---------------------------------------------------------------- types and axes


def _parameters() -> list[Rule]:
    """The parameters of a definition: names with types and defaults."""
    default = _region(
        "=(?!=)", rf"(?=[,)\]}}])|{_NEW_LINE}", _use("expression"), starts={"0": {"name": _scoped(SCOPES["_EQUAL"])}}
    )
    return [
        *_use("comment", "annotation"),
        default,
        _match("variable.parameter", _whole(pattern("NAME"))),
        _sign("_COMMA"),
    ]


def _annotation() -> Rule:
    """A type after a colon."""
    starts: Rule = {"0": {"name": _scoped(SCOPES["_COLON"])}}
    return _region(r":(?!=)", rf"(?=[=,;)\]}}#])|$|{_NEW_LINE}", _use("type"), starts=starts)


def _result() -> Rule:
    """The type after the arrow of a definition."""
    starts: Rule = {"0": {"name": _scoped(SCOPES["_ARROW"])}}
    return _region(pattern("_ARROW"), rf"(?=[:=;#])|$|{_NEW_LINE}", _use("type"), starts=starts)


def _type() -> list[Rule]:
    keywords = {word for found in keyword_scopes().values() for word in found}
    names = _match("support.type", _any_of([name for name in TYPE_NAMES if name not in keywords]))
    precision = _match(SCOPES["PREC"], _any_of(sorted(PRECISIONS, key=lambda name: (-len(name), name))))
    generic = rf"(?<!\w)({pattern('NAME')})[ \t]*(\[)"
    return [
        *_use("comment"),
        precision,
        _bracket(rf"\b({pattern('_INDEX')})[ \t]*(\[)", "square", _use("expression"), SCOPES["_INDEX"]),
        _bracket(generic, "square", _use("type"), {"patterns": [names]}),
        _bracket(r"(\[)", "square", _use("type-axes")),
        _bracket(r"(\()", "round", _use("type")),
        *_use("keyword"),
        names,
        _match("entity.name.type", _whole(pattern("NAME"))),
        _sign("_COMMA"),
    ]


def _type_axes() -> list[Rule]:
    name = pattern("NAME")
    return [
        *_use("comment"),
        _bracket(r"(\()", "round", _use("expression")),
        _match_groups(rf"(:)[ \t]*({name})", SCOPES["_COLON"], "entity.name.type.basis"),
        *_rows(),
        _match("variable.parameter.axis", _whole(name)),
        _sign("_COMMA"),
    ]


def _axes() -> list[Rule]:
    """What stands in the braces of axes notation."""
    name = pattern("NAME")
    round_bracket = SCOPES["_LPAR"]
    return [
        *_use("comment"),
        _match_groups(
            rf"\b({pattern('_COLLAPSE')})[ \t]*(\()[ \t]*({name})[ \t]*(\))",
            SCOPES["_COLLAPSE"],
            round_bracket,
            "variable.parameter.slot",
            round_bracket,
        ),
        _bracket(r"(\()", "round", _use("expression")),
        *_rows(),
        _match("variable.other.static", rf"{_whole(name)}(?=[ \t]*\*)"),
        _match("variable.parameter.label", _whole(name)),
        _sign("PLUS", "STAR"),
        _sign("_COMMA", "_SEMICOLON"),
    ]


def _rows() -> list[Rule]:
    """What types and axes notation have in common."""
    return [
        _match(SCOPES["ROWVAR"], pattern("ROWVAR", "ELLIPSIS")),
        _match(SCOPES["WILD"], _whole(pattern("WILD"))),
        _match(SCOPES["INT"], _after_no_letter(pattern("INT"))),
        _sign("_RESULT", "_ARROW", "_BAR", "_PADDED", "_CARET"),
    ]


def _whole(regex: str) -> str:
    return rf"(?<!\w)(?:{regex})(?!\w)"


def _after_no_letter(regex: str) -> str:
    return rf"(?<!\w)(?:{regex})"


# ---------------------------------------------------------------- files


def files() -> dict[str, str]:
    """The generated files: their texts by their paths in `editors/`."""
    return {
        "vscode/syntaxes/ocn.tmLanguage.json": json.dumps(textmate(), indent=2, ensure_ascii=False) + "\n",
        "vim/syntax/ocn.vim": vim(),
    }


def main() -> None:
    """Writes the files into `editors/` beside the package."""
    folder = Path(__file__).resolve().parents[2] / "editors"
    if not folder.is_dir():
        sys.exit("the files for editors are generated in a checkout: there is no folder `editors` here")
    for name, text in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        print(f"editors/{name}")


if __name__ == "__main__":
    main()
