"""Documents that the cloud and the cluster read: IAM policies, event patterns, manifests, chart values.

Pure functions of plain values that return plain values: no Pulumi, nothing but the standard library, no input
or output. Golden files in tests/unit/goldens hold what they make.
"""
