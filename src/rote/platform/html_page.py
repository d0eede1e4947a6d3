"""The frame and the tables of reports that are one self-contained HTML page."""

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1020px; padding: 0 1em;
       color: #1c1c1c; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .25em .6em;
       border-bottom: 1px solid #ddd; vertical-align: top } td.n, th.n { text-align: right }
td { overflow-wrap: anywhere } td.s, td.n { white-space: nowrap } td.t { min-width: 9em }
.scroll { overflow-x: auto }
.warn { color: #9a3b00 } .dim { color: #666 } svg { max-width: 100% }
"""


class Html(str):
    """HTML in a cell of a table; any other text is escaped."""

    __slots__ = ()


def render_document(title: str, body: str, style: str = "") -> str:
    """Return a page with a title; `body` is HTML. It loads nothing and runs no script.

    `style` is added to the style sheet of all reports.
    """
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}{style}</style></head><body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def render_table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], classes: str = ""
) -> str:
    """Return a table; `classes` has a letter per column: n (number), s (short), t (text)."""

    def render_cell(tag: str, column: int, value: object) -> str:
        css = f' class="{classes[column]}"' if classes else ""
        return f"<{tag}{css}>{value if isinstance(value, Html) else escape(str(value))}</{tag}>"

    def render_row(tag: str, values: Sequence[object]) -> str:
        cells = (render_cell(tag, column, value) for column, value in enumerate(values))
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(render_row("td", row) for row in rows)
    return f'<div class="scroll"><table>{render_row("th", headings)}{body}</table></div>'
