"""Ansible plugins of the scale test; ansible.cfg names their folders."""
