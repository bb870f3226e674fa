"""The rehearsal: karpstack's program, playbooks and policies on one machine, without a cloud account.

It attaches to the program from outside and imports none of it.
"""
