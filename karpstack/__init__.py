"""AKS and EKS clusters with Karpenter: components, rehearsal, scale test, review and what-if."""
