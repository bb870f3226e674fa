"""What can be bought, how large it is, what it costs, and the least that a demand can cost."""
