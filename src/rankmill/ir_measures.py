"""A provider for ir_measures that computes its measures with rankmill.

Importing this module registers it as ``ir_measures.providers.registry["rankmill"]``.
"""

from rankmill.adapters.trec.provider import RankmillProvider, name_of, provider

__all__ = ["RankmillProvider", "name_of", "provider"]
