"""What a cluster that is there says of what runs in it: who asks is the program, and the look before `up`.

Nothing is changed, and nothing here needs Pulumi.
"""
