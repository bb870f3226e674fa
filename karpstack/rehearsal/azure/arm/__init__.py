"""Azure Resource Manager: ids, the store, operations and refusals, whatever the type of a resource."""
