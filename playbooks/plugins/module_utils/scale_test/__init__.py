"""The scale test's logic: scenarios in, a recorded timeline, assertions and a report out.

Data flows one way: scenario -> recorder -> timeline -> replay -> assertions -> report. Nothing here acts on a
cluster: the roles do that through kubernetes.core.
"""
