"""The picture as a page: one self-contained HTML file, no script, nothing loaded; light, dark and on paper."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from firsthand_edge.gate.drawing.panel import milliseconds
from firsthand_edge.gate.drawing.sheet import sheet
from firsthand_edge.gate.drawing.style import DARK, LIGHT, SHEET, declared
from firsthand_edge.gate.drawing.take import WIDTH
from firsthand_edge.gate.drawing.words import attribute
from firsthand_edge.gate.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firsthand_edge.gate.drawing.panel import Panel

__all__ = ["page"]

STYLE = f"""
:root{{{declared(LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{{declared(DARK)}}}}}
@media print{{:root{{{declared(LIGHT)}}}body{{background:#fff}}section,table,li{{break-inside:avoid}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;print-color-adjust:exact}}
main{{max-width:1200px;margin:0 auto;padding:28px 20px 48px}}
h1{{font-size:22px;margin:0 0 4px;letter-spacing:-.01em}}
h2{{font-size:18px;margin:0;letter-spacing:-.01em;overflow-wrap:anywhere}}
p.lead{{margin:0 0 20px;color:var(--soft)}}
section,table{{background:var(--card);border:1px solid var(--line);border-radius:12px}}
section{{padding:20px 22px;margin:0 0 20px}}
table{{width:100%;border-collapse:separate;border-spacing:0;margin:0 0 22px;overflow:hidden}}
th,td{{text-align:left;padding:9px 14px;border-top:1px solid var(--line);vertical-align:top}}
tr:first-child th{{border-top:0;font-weight:600;color:var(--soft);font-size:13px}}
td.n{{font-variant-numeric:tabular-nums;white-space:nowrap}}
a{{color:inherit}}
.top{{display:flex;gap:12px;align-items:center;flex-wrap:wrap;margin-bottom:12px}}
.badge{{display:inline-block;font-weight:650;font-size:13px;padding:3px 10px;border-radius:99px;white-space:nowrap}}
.accepted{{background:var(--good-wash);color:var(--good)}}.rejected{{background:var(--bad-wash);color:var(--bad)}}
.cards{{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:1px;background:var(--line);
border:1px solid var(--line);border-radius:10px;overflow:hidden;margin:0 0 16px}}
.cards div{{background:var(--card);padding:9px 14px}}
.cards b{{display:block;font-size:19px;font-weight:650;font-variant-numeric:tabular-nums;letter-spacing:-.01em}}
.cards .bad b{{color:var(--bad)}}
.cards span{{color:var(--soft);font-size:13px}}
ul{{list-style:none;margin:0 0 16px;padding:0;display:grid;gap:8px}}
li{{padding:9px 14px;border-radius:8px;border-left:4px solid;overflow-wrap:anywhere}}
li.reason{{background:var(--bad-wash);border-color:var(--bad)}}
li.warning{{background:var(--warn-wash);border-color:var(--warn)}}
code{{font:600 13px/1 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;margin-right:8px;white-space:nowrap}}
.reason code{{color:var(--bad)}}.warning code{{color:var(--warn)}}
p.rest{{color:var(--soft);font-size:13px;margin:12px 0 0;overflow-wrap:anywhere}}
p.none{{padding:14px;text-align:center;color:var(--soft);border:1px dashed var(--line);border-radius:8px}}
svg{{display:block;width:100%;height:auto;font-family:inherit;font-variant-numeric:tabular-nums}}
.sheet{{overflow-x:auto}}.sheet svg{{min-width:820px}}
{SHEET}"""


def page(panels: Sequence[Panel], *, title: str) -> str:
    """The page as HTML.

    Args:
        panels: Recordings, in the order to show them.
        title: Heading of the page.
    """
    good = sum(panel.accepted for panel in panels)
    lead = f"{count(len(panels), 'recording')}: {good} accepted, {len(panels) - good} rejected."
    body = "".join(_section(number, panel) for number, panel in enumerate(panels, start=1))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" '
        'content="light dark">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>"
        f"<h1>{escape(title)}</h1><p class=lead>{escape(lead)}</p>{_table(panels)}{body}</main></body></html>\n"
    )


def _badge(panel: Panel) -> str:
    verdict, mark = ("accepted", "\u2713") if panel.accepted else ("rejected", "\u2717")
    return f'<span class="badge {verdict}">{mark} {verdict}</span>'


def _table(panels: Sequence[Panel]) -> str:
    if len(panels) < 2:
        return ""
    rows = "".join(
        f'<tr><td><a href="#p{number}">{escape(panel.title)}</a></td><td>{_badge(panel)}</td>'
        f"<td>{escape(panel.codes())}</td><td class=n>{milliseconds(panel.held['max'])}</td></tr>"
        for number, panel in enumerate(panels, start=1)
    )
    return f"<table><tr><th>Recording<th>Verdict<th>Why<th>Largest disagreement</tr>{rows}</table>"


def _section(number: int, panel: Panel) -> str:
    notes = "".join(f"<p class=rest>{escape(note)}</p>" for note in panel.footnotes())
    nothing = panel.nothing()
    return (
        f'<section id="p{number}"><div class=top><h2>{escape(panel.title)}</h2>{_badge(panel)}</div>'
        f"{_cards(panel)}{_statements(panel)}{f'<p class=none>{escape(nothing)}</p>' if nothing else ''}"
        f"{_drawing(panel)}{notes}</section>"
    )


def _cards(panel: Panel) -> str:
    inner = "".join(
        f"<div{' class=bad' if card.bad else ''}><b>{escape(card.value)}</b><span>{escape(card.label)}</span></div>"
        for card in panel.cards()
    )
    return f"<div class=cards>{inner}</div>"


def _statements(panel: Panel) -> str:
    items = "".join(
        f'<li class="{said.kind}"><code>{escape(said.code)}</code>{escape(said.sentence)}'
        f"{f' <em>{escape(said.more)}</em>' if said.more else ''}</li>"
        for said in panel.statements()
    )
    return f"<ul>{items}</ul>" if items else ""


def _drawing(panel: Panel) -> str:
    drawn = sheet(panel.report, panel.figures)
    if drawn is None:
        return ""
    label = attribute(f"Disagreement over time, samples, offsets and pairs of {panel.title}")
    return (
        f'<div class=sheet><svg viewBox="0 -4 {WIDTH} {drawn.height + 8}" role="group" aria-label="{label}">'
        f"{drawn.svg}</svg></div>"
    )
