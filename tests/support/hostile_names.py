"""What other tests share with those of escaping."""

from hypothesis import strategies as st

from rankmill.io.inert_text import visible

HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "a\nb\rc\td\x0b\x0c\x08",
    "\x7f\x80\x9b31m\x85",
    "\u202eexe.txt\u2066\u2069\u200f",
    "a\u200bb\u200d\ufeff\u00ad\u2060",
    "line\u2028paragraph\u2029",
    "\udc80\udcff\ud800",
    "\ufe0f\u034f\u3164\U000e0041",
    "\\x1b \\n \\",
    "[red]markup[/red] [/] [link=x]",
    "a|b`c`<b>d</b>&amp;*e* _f_ [g](h) ~~i~~ $j$ \\|",
    "=1+1",
    "-2+3",
    "+4",
    "@SUM(1)",
    "'=1",
    "\t=1",
    "\uff1d1",
]


TEXTS = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(),
    st.text(st.sampled_from("\\xnrtu1b\x1b\n\r\t\u202e |`*_[]<>&~$'=+-@ab")),
    st.text(st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Zs"])),
)


ESCAPES = "\x1b[31m\x1b]0;t\x07[red]\u202e|=<b>\n"


SHOWN = visible(ESCAPES)
