"""The page of a run: what happened, and where to look, in one HTML file."""

from rankmill.nightly.report.pages import lists_of, page

__all__ = ["lists_of", "page"]
