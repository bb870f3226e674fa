"""EC2: network, instances, images and prices."""
