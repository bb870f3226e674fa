"""What a change would do to a cluster: judges a recorded what-if, and says the answer.

The timeline is the only source: `phases` reads it; `nodes`, `blast_radius`, `unscheduled_pods`, `remaining`, `week` and
`accuracy` say what it shows; `judge` puts that together into the `answer`, and `markdown` and `page` write it. Before
there is one, `base_nodes` and `placing` make the cluster with which a what-if begins, `settling` knows when it rests,
for which `recheck` wakes Karpenter, and `leftovers` finds what is to be removed.
"""
