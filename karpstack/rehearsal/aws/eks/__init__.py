"""EKS: clusters, node groups, add-ons, and who may use a cluster."""
