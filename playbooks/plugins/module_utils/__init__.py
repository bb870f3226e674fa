"""Code that the modules share, testable without Ansible and without a cluster."""
