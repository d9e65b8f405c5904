"""The audit of a source of pairs that need not fit into memory: what passes over it can say."""

from .source_audit import SourceAudit, audit_source
from .source_raters import SourceRater

__all__ = ["SourceAudit", "SourceRater", "audit_source"]
