"""Networks to rehearse in that the stack does not make: `karpstack network STACK`.

What is made is a file beside the stack's, in the words of the cloud's API, to be edited as needed: the same that is
written of a real network (docs/how-to/eks/existing-vpc.md,
docs/how-to/aks/existing-vnet.md). The simulated account has it from its start.
"""
