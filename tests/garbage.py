"""Garbage collection in a process whose imports are large.

Pulumi's SDKs, botocore and moto are half a million objects that live as long as the process. Python would look through
all of them every few tests, which was a third of the time that the tests of such a process took.
"""

from __future__ import annotations

import gc

#: Objects made before the young ones are looked through: what a program with a few hundred resources makes, which would
#: be looked through again and again while it runs. Python's own number is 700.
_YOUNG = 100_000


def collect_seldom() -> None:
    gc.set_threshold(_YOUNG)


def spare_what_is_here() -> None:
    """Leave what is there now out of all further collections: modules, above all. Garbage is removed before."""
    gc.collect()
    gc.freeze()
