"""Who exists (Entra and managed identities), and what each may do."""
