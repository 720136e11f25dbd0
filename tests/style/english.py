# SPDX-License-Identifier: BSD-2-Clause
"""Sentences of comments, documents, man pages and messages that are hard to read.

A program can see two things: a sentence of more than 25 words, and one that begins with Of, Who, Whose, What or Where.
A question may begin so. Code, headings and drawn lines (indented, or in columns) are no sentences."""
import re

WORDS_MAX = 25
FIRST = re.compile(r"(Of|Who|Whose|What|Where)\b")
WORD = re.compile(r"\S*[A-Za-z]\S*")
STRING = r'"(?:\\.|[^"\\\n])*"'
# A literal, with those that the compiler appends to it; or a comment.
C_TOKEN = re.compile(STRING + r'(?:(?:\s|\\\n)*(?:PRI\w+\s*)?' + STRING + r""")*|'(?:\\.|[^'\\\n])*'|/\*.*?\*/"""
                     r"|(?<![:\w])//[^\n]*(?:\n[ \t]*//[^\n]*)*", re.S)
ESCAPE = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
DRAWN = re.compile(r"^ {2,}|\S {3,}\S|\S\t+\S")
ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s+")
# A number that ends a sentence may begin a line; an item of a list comes behind another one, or is the first.
INSIDE = re.compile(r"\s*[-*]\s+")
# A script's name, its arguments, and then what it does.
USAGE = re.compile(r"^[\w./-]+( [\w.|\[\]()\"*=-]+)*: (?=[a-z])")


def paragraphs(line, text):
    """The lines that are prose, joined up to the next line that is not: (line number, text)."""
    begin, parts, numbered = line, [], False
    for n, each in enumerate(text.split("\n"), line):
        each = each.rstrip()
        item = (ITEM if numbered or not parts else INSIDE).match(each)
        prose = each.strip() and (item or not DRAWN.search(each))
        if parts and (not prose or item):
            yield begin, " ".join(parts)
            parts = []
        if prose:
            if not parts:
                begin, numbered = n, bool(item) and not INSIDE.match(each)
            parts.append(each[item.end() if item else 0:].strip())
    if parts:
        yield begin, " ".join(parts)


def dedent(text):
    """Without the indentation of the line that is indented least; the first line has none."""
    first, _, rest = text.partition("\n")
    depth = min((len(l) - len(l.lstrip()) for l in rest.split("\n") if l.strip()), default=0)
    return first.strip() + "\n" + "\n".join(l[depth:] for l in rest.split("\n"))


def is_message(text):
    """Neither an example of commands nor text in another language."""
    return "{" not in text and not re.fullmatch(r"(\s*uniscope [^\n]*){2,}", text)


def of_c(text, messages=False):
    for m in C_TOKEN.finditer(text):
        body, line = m.group(0), text.count("\n", 0, m.start()) + 1
        if body.startswith("/*"):
            body = re.sub(r"^[ \t]*\*?", "", body[2:-2], flags=re.M)
        elif body.startswith("//"):
            body = re.sub(r"^[ \t]*//", "", body, flags=re.M)
        elif body.startswith('"') and messages:
            body = " " + re.sub(r'"(?:\s|\\\n)*(?:PRI\w+\s*)?"', "", body)[1:-1]
            body = re.sub(r"\\(.)", lambda e: ESCAPE.get(e.group(1), " "), body)
            if not is_message(body):
                continue
        else:
            continue
        yield from paragraphs(line, re.sub(r"^ ", "", body.expandtabs(8), flags=re.M))


def of_script(text):
    for m in re.finditer(r"^[ \t]*#(?!!)[^\n]*(?:\n[ \t]*#[^\n]*)*", text, re.M):
        body = re.sub(r"^[ \t]*# ?", "", m.group(0), flags=re.M)
        for line, paragraph in paragraphs(text.count("\n", 0, m.start()) + 1, body):
            yield line, USAGE.sub("", paragraph)
    # Behind code: outside of what that line quotes.
    for n, line in enumerate(text.split("\n"), 1):
        m = re.match(r"""\s*(?=[^\s#])(?:"(?:\\.|[^"\\])*"|'[^']*'|[^"'#]|(?<!\s)#)*\s# (.*)""", line)
        if m:
            yield n, m.group(1)
    for m in re.finditer(r'^[ \t]*"""(.*?)"""', text, re.S | re.M):
        for line, paragraph in paragraphs(text.count("\n", 0, m.start(1)) + 1, dedent(m.group(1))):
            yield line, USAGE.sub("", paragraph)


def code_named(text):
    """A name in code is a word, and so is a list of them."""
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"(`+).*?\1", "code", text))
    return re.sub(r"\bcode(?:, code)*,? (?:and|or) code\b|\bcode(?:, code)+", "code", text)


def of_markdown(text):
    blank = lambda m: re.sub(r"[^\n]", " ", m.group(0))
    text = re.sub(r"^[ ]*```.*?^[ ]*```", blank, text, flags=re.S | re.M)
    # Headings, and the row of a table that names its columns.
    text = re.sub(r"^#.*|^\|.*\n\|[-| :]+$", blank, text, flags=re.M)
    # Each cell is a paragraph; examples that are indented are none.
    cells = [(n, c) for n, line in enumerate(text.split("\n"), 1) if line.startswith("|")
             for c in code_named(line.replace(r"\|", "/")).strip("|").split("|")]
    text = re.sub(r"^\|.*|(?<=\n\n)(?:    .*\n)+", blank, text, flags=re.M)
    text = re.sub(r"^ *(?:> ?)?", "", text, flags=re.M)
    for n, paragraph in list(paragraphs(1, text)):
        yield n, code_named(paragraph)
    for n, c in cells:
        yield n, c.strip()


# Their literals are in exported files, which stay as they are.
EXPORTED = {"src/format/firefox/exits.c"}
FONTS = ("B", "BR", "I", "IR", "RB", "RI", "BI", "IB", "R")


def of_man(text):
    """Macros that only choose a font go on with the sentence. An example, SYNOPSIS and SEE ALSO are none.

    A FILE.in without .TH is in another language."""
    begin, parts, off, tag = 1, [], False, False
    if not re.search(r"^\.TH ", text, re.M):
        return
    text = re.sub(r"@OPTIONS[^@]*@", lambda m: "\n" * m.group(0).count("\n"), text)
    for n, line in enumerate(text.split("\n") + [".PP"], 1):
        macro = re.match(r"\.(\w+)\s*|[.']\\\"", line)
        name = macro.group(1) if macro else None
        if macro and name not in FONTS:
            if parts and not off:
                yield begin, " ".join(parts)
            parts = []
            if name in ("nf", "EX", "SH", "fi", "EE"):
                off = name in ("nf", "EX") or "SEE ALSO" in line or "SYNOPSIS" in line
            tag = name in ("TP", "TQ") or tag and name is None
        elif tag:
            tag = False  # the line behind .TP is what the paragraph is about
        else:
            begin = begin if parts else n
            line = re.sub(r"\\f.|\\&", "", line[macro.end() if macro else 0:]).replace("\\-", "-")
            if macro and len(name) == 2:  # every other one in bold, without a blank between
                line = "".join(a or b for a, b in re.findall(r'"([^"]*)"|(\S+)', line))
            parts.append(line)


KINDS = {".c": of_c, ".h": of_c, ".S": of_c, ".inc": of_c, ".cc": of_c, ".ld": of_c, ".rs": of_c, ".ts": of_c, ".js": of_c,
         ".mjs": of_c, ".css": of_c, ".py": of_script, ".sh": of_script, ".build": of_script, ".md": of_markdown,
         ".in": of_man}


def sentences(text):
    text = re.sub(r"SPDX-License-Identifier: \S+( OR \S+)*", "", text)
    for m in re.finditer(r"\S.*?(?:[.!?][\"')*]*(?=\s|$)|$)", text, re.S):
        yield m.group(0).lstrip("*(\"' ").rstrip()


def offences(path, text):
    """(line, what is wrong, sentence) of a file's text; its path begins at the source folder."""
    kind = KINDS.get(path.suffix) or (of_script if re.match(r"#!.*\b(sh|bash|python3)\b", text) else None)
    if kind == of_c and path.parts[0] == "src" and path.as_posix() not in EXPORTED:
        kind = lambda c: of_c(c, messages=True)
    for line, paragraph in kind(text) if kind else ():
        for s in sentences(paragraph):
            first = FIRST.match(s)
            nr = len(WORD.findall(s))
            if first and not re.search(r"[?:][\"')*]*$", s):
                yield line, f"begins with {first.group(1)}", s
            elif nr > WORDS_MAX:
                yield line, f"has {nr} words", s
