"""IAM: roles, their documents, and the credentials that pods get for them."""
