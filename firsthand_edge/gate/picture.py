"""The picture of a verdict: one self-contained HTML page, no script, nothing loaded from elsewhere, light and dark."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from firsthand_edge.gate.charts import Series, chart
from firsthand_edge.gate.wording import count, ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Panel", "render"]

STYLE = """
:root{--paper:#f7f8fa;--card:#fff;--ink:#161a21;--soft:#5d6675;--line:#e2e6ec;--trace:#2f6fb4;--bad:#c8321f;
--bad-wash:#fdeeeb;--good:#1c7c48;--good-wash:#e7f5ec;--warn:#9a6400;--warn-wash:#fdf3df;--frame:#fafbfc}
@media (prefers-color-scheme:dark){:root{--paper:#12151a;--card:#1a1e25;--ink:#e8ebf0;--soft:#98a2b3;--line:#2c323c;
--trace:#6cabf0;--bad:#ff7a66;--bad-wash:#39201d;--good:#63d196;--good-wash:#16301f;--warn:#f0b855;--warn-wash:#33291a;
--frame:#161a20}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1200px;margin:0 auto;padding:28px 20px 48px}
h1{font-size:22px;margin:0 0 4px;letter-spacing:-.01em}
h2{font-size:18px;margin:0;letter-spacing:-.01em}
p.lead{margin:0 0 20px;color:var(--soft)}
section,table{background:var(--card);border:1px solid var(--line);border-radius:12px}
section{padding:20px 22px;margin:0 0 20px}
table{width:100%;border-collapse:separate;border-spacing:0;margin:0 0 22px;overflow:hidden}
th,td{text-align:left;padding:9px 14px;border-top:1px solid var(--line);vertical-align:top}
tr:first-child th{border-top:0;font-weight:600;color:var(--soft);font-size:13px}
td.n{font-variant-numeric:tabular-nums;white-space:nowrap}
a{color:inherit}
.head{display:flex;gap:12px;align-items:center;flex-wrap:wrap;margin-bottom:12px}
.badge{display:inline-block;font-weight:650;font-size:13px;padding:3px 10px;border-radius:99px;white-space:nowrap}
.accepted{background:var(--good-wash);color:var(--good)}.rejected{background:var(--bad-wash);color:var(--bad)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:1px;background:var(--line);
border:1px solid var(--line);border-radius:10px;overflow:hidden;margin:0 0 16px}
.cards div{background:var(--card);padding:9px 14px}
.cards b{display:block;font-size:19px;font-weight:650;font-variant-numeric:tabular-nums;letter-spacing:-.01em}
.cards .bad b{color:var(--bad)}
.cards span{color:var(--soft);font-size:13px}
ul{list-style:none;margin:0 0 16px;padding:0;display:grid;gap:8px}
li{padding:9px 14px;border-radius:8px;border-left:4px solid}
li.reason{background:var(--bad-wash);border-color:var(--bad)}li.warning{background:var(--warn-wash);border-color:var(--warn)}
code{font:600 13px/1 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;margin-right:8px;white-space:nowrap}
.reason code{color:var(--bad)}.warning code{color:var(--warn)}
p.rest,p.key{color:var(--soft);font-size:13px;margin:12px 0 0}
p.key{display:flex;gap:20px;flex-wrap:wrap;margin:0 0 6px}
p.key i{display:inline-block;width:20px;height:0;vertical-align:middle;margin-right:6px;border-top:2px solid}
svg{display:block;width:100%;height:auto;font-family:inherit}
.name{font-size:14px;font-weight:600;fill:var(--ink)}.name.bad{fill:var(--bad)}
.small{font-size:12px;fill:var(--soft);font-variant-numeric:tabular-nums}
.axis{font-size:11px;fill:var(--soft);font-variant-numeric:tabular-nums}
.frame{fill:var(--frame);stroke:var(--line)}.grid{stroke:var(--line)}.zero{stroke:var(--soft);stroke-opacity:.45}
.ceiling{stroke:var(--bad);stroke-dasharray:5 4;stroke-opacity:.8}
.trace{fill:none;stroke:var(--trace);stroke-width:1.4;stroke-linejoin:round}
.over{fill:none;stroke:var(--bad);stroke-width:1.6}
.frozen{fill:var(--bad);fill-opacity:.16;stroke:var(--bad);stroke-opacity:.6}.axis.bad{fill:var(--bad);font-weight:600}
.rug{fill:none;stroke:var(--bad);stroke-width:1.6}
.cover{fill:var(--trace);fill-opacity:.35}
.bar{fill:var(--trace);fill-opacity:.7}.bar.bad{fill:var(--bad);fill-opacity:.9}
.none{padding:26px;text-align:center;color:var(--soft);border:1px dashed var(--line);border-radius:8px}
@media print{body{background:#fff}section,table{break-inside:avoid}}
"""

KEY = (
    ("--trace", "solid", "offset to the reference"),
    ("--bad", "dashed", "ceiling"),
    ("--bad", "solid", "over the ceiling; below a row: a missing tick"),
)


@dataclass(frozen=True, slots=True)
class Panel:
    """One take or recording on the page."""

    title: str
    report: Mapping[str, Any]
    """`firsthand.sync-report/1`."""
    series: Series | None
    """None when nothing was matched."""


def render(panels: Sequence[Panel], *, title: str = "How far the streams disagree") -> str:
    """The page as HTML.

    Args:
        panels: Takes or recordings, in the order to show them.
        title: Heading of the page.
    """
    table = _table(panels) if len(panels) > 1 else ""
    body = "".join(_panel(number, panel) for number, panel in enumerate(panels, start=1))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" '
        'content="light dark">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>"
        f"<h1>{escape(title)}</h1><p class=lead>{escape(_lead(panels))}</p>{table}{body}</main></body></html>\n"
    )


def _lead(panels: Sequence[Panel]) -> str:
    good = sum(panel.report["verdict"] == "accepted" for panel in panels)
    return f"{count(len(panels), 'recording')}: {good} accepted, {len(panels) - good} rejected."


def _badge(report: Mapping[str, Any]) -> str:
    verdict = report["verdict"]
    mark = "\u2713" if verdict == "accepted" else "\u2717"
    return f'<span class="badge {verdict}">{mark} {verdict}</span>'


def _table(panels: Sequence[Panel]) -> str:
    rows = ""
    for number, panel in enumerate(panels, start=1):
        reasons = ", ".join(dict.fromkeys(reason["code"] for reason in panel.report["reasons"]))
        warnings = ", ".join(dict.fromkeys(warning["code"] for warning in panel.report["warnings"]))
        said = escape(reasons) + (f" <small>warning: {escape(warnings)}</small>" if warnings else "")
        rows += (
            f'<tr><td><a href="#p{number}">{escape(panel.title)}</a></td><td>{_badge(panel.report)}</td><td>{said}</td>'
            f"<td class=n>{_ms(_held(panel.report)['max'])}</td></tr>"
        )
    return f"<table><tr><th>Recording<th>Verdict<th>Why<th>Largest disagreement</tr>{rows}</table>"


def _held(report: Mapping[str, Any]) -> Mapping[str, Any]:
    held: Mapping[str, Any] = report["guarded_ns" if report.get("guard_band") else "residual_ns"]
    return held


def _ms(value: int | None) -> str:
    return "\u2014" if value is None else ms(value)


def _panel(number: int, panel: Panel) -> str:
    report = panel.report
    drawn = _drawn(panel)
    key = "".join(f'<span><i style="color:var({c});border-top-style:{s}"></i>{escape(t)}</span>' for c, s, t in KEY)
    picture = f"<p class=key>{key}</p>{drawn}" if drawn else f"<p class=none>{escape(_nothing(report))}</p>"
    silent = ", ".join(report["not_judged"])
    notes = "".join(f"<p class=rest>{escape(note)}</p>" for note in report.get("notes", ()))
    return (
        f'<section id="p{number}"><div class=head><h2>{escape(panel.title)}</h2>{_badge(report)}</div>'
        f"{_cards(report)}{_said(report)}{picture}{notes}<p class=rest>Not judged: {escape(silent)}.</p></section>"
    )


def _drawn(panel: Panel) -> str:
    if panel.series is None:
        return ""
    report = panel.report
    frozen = {row["stream"] for row in report["reasons"] if row["code"] == "picture.frozen"}
    return chart(panel.series, ceiling_ns=report["ceiling_ns"], reference=report["reference"], frozen=frozen)


def _nothing(report: Mapping[str, Any]) -> str:
    first = report["reasons"][0]["code"] if report["reasons"] else "no ticks"
    return f"Nothing was matched ({first}), so there are no residuals to draw."


def _cards(report: Mapping[str, Any]) -> str:
    held, span = _held(report), report["span"]
    missing = sum(row.get("missing", 0) for row in report["streams"].values())
    cards = (
        (_ms(held["max"]), "largest disagreement", held["over_ceiling"] > 0),
        (_ms(held["p99"]), "99th percentile", (held["p99"] or 0) > report["ceiling_ns"]),
        (_ms(held["median"]), "median", (held["median"] or 0) > report["ceiling_ns"]),
        (
            f"{held['over_ceiling']} of {held['ticks']}",
            f"ticks over {ms(report['ceiling_ns'])}",
            held["over_ceiling"] > 0,
        ),
        (str(missing), "missing samples", any(r["code"] == "sync.missing" for r in report["reasons"])),
        (f"{span['trimmed_start']} + {span['trimmed_end']}", "ticks trimmed", False),
    )
    inner = "".join(
        f"<div{' class=bad' if bad else ''}><b>{escape(v)}</b><span>{escape(t)}</span></div>" for v, t, bad in cards
    )
    return f"<div class=cards>{inner}</div>"


def _said(report: Mapping[str, Any]) -> str:
    items = "".join(
        f'<li class="{kind}"><code>{escape(row["code"])}</code>{escape(row["sentence"])}{_cause(row)}</li>'
        for kind, rows in (("reason", report["reasons"]), ("warning", report["warnings"]))
        for row in rows
    )
    return f"<ul>{items}</ul>" if items else ""


def _cause(row: Mapping[str, Any]) -> str:
    cause = row.get("cause")
    return f" <em>Likely: {escape(cause)}.</em>" if cause and cause not in row["sentence"] else ""
