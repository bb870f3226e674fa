"""What Karpenter's objects mean, without Pulumi, Ansible or a cloud.

One reading for those who write NodePools and those who judge them: requirements, instance types and their prices,
quantities and durations, disruption budgets, and the objects' own schemas. Plain data goes in, as YAML or JSON has it.
Generated data lies beside the code.
"""
