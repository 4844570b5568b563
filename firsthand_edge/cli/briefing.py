"""A briefing on the terminal, 80 columns wide, and as one self-contained page to be printed or mailed."""

from __future__ import annotations

import re
import textwrap
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from firsthand_edge.spec.briefing import Block, Chapter

__all__ = ["page", "paragraphs", "text_lines"]

WIDTH: Final = 80
STYLE: Final = """
:root{--paper:#f7f8fa;--card:#fff;--ink:#161a21;--soft:#5d6675;--line:#e2e6ec;--trace:#2f6fb4}
@media (prefers-color-scheme:dark){:root{--paper:#12151a;--card:#1a1e25;--ink:#e8ebf0;--soft:#98a2b3;--line:#2c323c;
--trace:#6cabf0}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:820px;margin:0 auto;padding:32px 20px 56px}
h1{font-size:26px;line-height:1.25;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:18px;margin:0 0 10px;letter-spacing:-.01em}
h3{font-size:16px;margin:14px 0 2px;display:flex;justify-content:space-between;gap:16px}
h3 span{color:var(--soft);font-weight:400;font-variant-numeric:tabular-nums;white-space:nowrap}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:18px 22px;margin:0 0 16px}
p{margin:8px 0}ul{margin:6px 0;padding-left:20px}li{margin:2px 0}
p.lead{color:var(--soft);margin:0 0 8px}p.lead:last-of-type{margin-bottom:22px;overflow-wrap:anywhere}
blockquote{margin:8px 0;padding:2px 16px;border-left:4px solid var(--trace)}
@media print{body{background:#fff;font-size:12px}section{break-inside:avoid;border:0;padding:0}}
"""


def paragraphs(text: str) -> list[str]:
    """Text between blank lines, each on one line: how a document's lines are broken says nothing."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]


def text_lines(title: str, lead: Sequence[str], chapters: Sequence[Chapter]) -> list[str]:
    """The page as lines of at most 80 columns, but for words that are longer.

    Args:
        title: Of the page.
        lead: Sentences below it.
        chapters: In the order to show them.
    """
    lines = [*_wrapped(title), "=" * min(len(title), WIDTH)]
    for sentence in lead:
        lines += _wrapped(sentence)
    for chapter in chapters:
        lines += ["", chapter.heading, "-" * len(chapter.heading)]
        above: str = "paragraph"
        for block in chapter.blocks:
            if block.kind != "bullet" and above != "paragraph":
                lines.append("")
            lines += _block_lines(block)
            above = block.kind
    return lines


def _block_lines(block: Block) -> Iterator[str]:
    if block.kind == "entry":
        room = WIDTH - len(block.aside) - 2
        first, *rest = _wrapped(block.label, width=max(room, 20))
        yield f"{first:<{room}}  {block.aside}"
        yield from rest
        if block.text:
            yield from _wrapped(block.text, first="  ", rest="  ")
    elif block.kind == "bullet":
        yield from _wrapped(block.text, first="- ", rest="  ")
    elif block.kind == "quote":
        for number, part in enumerate(paragraphs(block.text)):
            if number:
                yield "  |"
            yield from _wrapped(part, first="  | ", rest="  | ")
    else:
        for part in paragraphs(block.text):
            yield from _wrapped(part)


def _wrapped(text: str, *, first: str = "", rest: str = "", width: int = WIDTH) -> list[str]:
    flat = " ".join(text.split())
    return textwrap.wrap(
        flat,
        width=width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def page(title: str, lead: Sequence[str], chapters: Sequence[Chapter]) -> str:
    """The page as HTML: no script, nothing loaded from elsewhere, light and dark. Arguments as of `text_lines`."""
    below = "".join(f"<p class=lead>{escape(sentence)}</p>" for sentence in lead)
    body = "".join(_section(chapter) for chapter in chapters)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" '
        f'content="light dark"><title>{escape(title)}</title><style>{STYLE}</style></head><body><main>'
        f"<h1>{escape(title)}</h1>{below}{body}</main></body></html>\n"
    )


def _section(chapter: Chapter) -> str:
    parts = [f"<h2>{escape(chapter.heading)}</h2>"]
    bullets = False
    for block in chapter.blocks:
        if (block.kind == "bullet") is not bullets:
            parts.append("</ul>" if bullets else "<ul>")
            bullets = not bullets
        parts.append(_html(block))
    return f"<section>{''.join(parts)}{'</ul>' if bullets else ''}</section>"


def _html(block: Block) -> str:
    if block.kind == "bullet":
        return f"<li>{escape(' '.join(block.text.split()))}</li>"
    inner = "".join(f"<p>{escape(part)}</p>" for part in paragraphs(block.text)) if block.text else ""
    if block.kind == "entry":
        return f"<h3>{escape(block.label)}<span>{escape(block.aside)}</span></h3>{inner}"
    return f"<blockquote>{inner}</blockquote>" if block.kind == "quote" else inner
