"""The simulated Azure subscription: one ARM store with two faces.

`subscription.Subscription` is the way in. Callers in this process use its `arm`; the production controller talks to
the same store on the wire (`wire`), with tokens that `entra` gave it and rights that `access` reads from the stored
role assignments. What a type of resource needs and refuses is in `kinds`, one subject a module. A type, an API
version or a path that is not there is refused as Azure refuses it, by its name.
"""
