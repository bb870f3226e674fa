"""The simulated Azure subscription: one ARM store with two faces.

`subscription.Subscription` is the way in. Callers in this process use its `arm`; the production controller talks to
the same store on the wire (`wire`), with the tokens and the rights that `identity` gives it. Each room has what ARM
does with its types of resources, which `kinds` lists, and in `resources` what Pulumi's provider says about them, which
`provider` lists. A type, an API version or a path that is not there is refused as Azure refuses it, by its name.
"""
