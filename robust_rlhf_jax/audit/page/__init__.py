"""`audit.html`: one self-contained page of what an audit found."""

from .render import render_audit

__all__ = ["render_audit"]
