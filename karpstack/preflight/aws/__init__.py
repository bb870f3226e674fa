"""What is asked of an AWS account."""
