"""A simulated Mercury API: chat, streams, diffusion, fill-in-the-middle, edits, models, and faults on demand.

For tests, demonstrations and benchmarks, in this process or another. It answers in the vendor's shapes with
invented text; nothing of the bridge is used here, so that neither can hide a mistake of the other.
"""

from .catalogue import MODELS, Model
from .faults import NAMED, Fault, Faults
from .journal import Journal, ReceivedRequest
from .server import Simulator

__all__ = ["MODELS", "NAMED", "Fault", "Faults", "Journal", "Model", "ReceivedRequest", "Simulator"]
