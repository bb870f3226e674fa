"""The scale test's logic: scenarios in, a recorded timeline, assertions and a report out.

A scenario is a file: what to do, and what must come of it. A story is one run of it, which the timeline tells and the
report judges.

Data flows one way: scenarios -> faults; recording -> judging -> numbers -> reports. `market` knows what can be bought,
and serves the last three; `text` reads and shows what others wrote, and serves all. The roles act on the cluster
through kubernetes.core; only `faults` acts itself, on what Kubernetes has no resource for.
"""
