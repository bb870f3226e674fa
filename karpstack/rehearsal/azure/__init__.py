"""The simulated Azure subscription: one ARM store with two faces.

`subscription.Subscription` is the way in. Callers in this process use its `arm`; the production controller talks to
the same store on the wire (`wire`), with the tokens and the rights that `identity` gives it. What ARM and Pulumi's
provider know of a type is a row of types.yaml; a room has what a row cannot say, which `kinds` and `provider` list. A
type, an API version or a path that is not there is refused as Azure refuses it, by its name.
"""
