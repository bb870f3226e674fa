"""Write karpstack/karpenter/facts/ and karpstack/karpenter/schemas/: `make facts`."""

from __future__ import annotations

from karpstack.generators import crds, facts, metric_names
from karpstack.karpenter.crds import FOLDER as SCHEMAS
from karpstack.karpenter.fact_files import FOLDER as FACTS
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.engines.builder import Go


def main() -> None:
    """Write the files."""
    engines = EngineSet.current()
    written = facts.documents(engines) | metric_names.documents(Go.find())
    for folder, files in ((FACTS, written), (SCHEMAS, crds.documents(engines))):
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
            print(f"{folder / name}: {len(content) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
