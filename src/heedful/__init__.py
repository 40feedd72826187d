"""How was this attention learned, and can it be trusted as an explanation?

The public names are imported when first used, so that `import heedful` is quick and `preflight` needs no torch.

>>> import heedful
>>> "study" in dir(heedful)
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from heedful.api import audit as audit
    from heedful.api import check as check
    from heedful.api import claims as claims
    from heedful.api import follow as follow
    from heedful.api import load as load
    from heedful.api import preflight as preflight
    from heedful.api import query as query
    from heedful.api import report as report
    from heedful.api import reproduce as reproduce
    from heedful.api import runs as runs
    from heedful.api import study as study
    from heedful.api import sweep as sweep
    from heedful.attribution.interface import Subject as Subject
    from heedful.attribution.modules import ModuleNetwork as ModuleNetwork
    from heedful.attribution.modules import WordReader as WordReader
    from heedful.attribution.network import Output as Output
    from heedful.audits.arrays import audit_arrays as audit_arrays
    from heedful.audits.result import AuditResult as AuditResult
    from heedful.config import ModelConfig as ModelConfig
    from heedful.config import StudyConfig as StudyConfig
    from heedful.config import TrainConfig as TrainConfig
    from heedful.data.corpus import Corpus as Corpus
    from heedful.errors import HeedfulError as HeedfulError
    from heedful.followed.training import Recorder as Recorder
    from heedful.followed.training import TraceCallback as TraceCallback
    from heedful.metrics.statistics import Estimate as Estimate
    from heedful.models import lexicon as lexicon
    from heedful.studies.result import StudyResult as StudyResult
    from heedful.sweeps.result import SweepResult as SweepResult
    from heedful.tracing.store import Trace as Trace

_HOMES = {
    "AuditResult": "heedful.audits.result",
    "Corpus": "heedful.data.corpus",
    "Estimate": "heedful.metrics.statistics",
    "HeedfulError": "heedful.errors",
    "ModelConfig": "heedful.config",
    "ModuleNetwork": "heedful.attribution.modules",
    "Output": "heedful.attribution.network",
    "Recorder": "heedful.followed.training",
    "StudyConfig": "heedful.config",
    "StudyResult": "heedful.studies.result",
    "Subject": "heedful.attribution.interface",
    "SweepResult": "heedful.sweeps.result",
    "Trace": "heedful.tracing.store",
    "TraceCallback": "heedful.followed.training",
    "TrainConfig": "heedful.config",
    "WordReader": "heedful.attribution.modules",
    "audit": "heedful.api",
    "audit_arrays": "heedful.audits.arrays",
    "check": "heedful.api",
    "claims": "heedful.api",
    "follow": "heedful.api",
    "load": "heedful.api",
    "preflight": "heedful.api",
    "query": "heedful.api",
    "report": "heedful.api",
    "reproduce": "heedful.api",
    "runs": "heedful.api",
    "study": "heedful.api",
    "sweep": "heedful.api",
}
__all__ = sorted([*_HOMES, "__version__", "lexicon"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("heedful")
    if name == "lexicon":
        return import_module("heedful.models.lexicon")
    if name not in _HOMES:
        raise AttributeError(f"module 'heedful' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
