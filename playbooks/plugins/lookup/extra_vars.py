"""Ansible lookup: the variables that were given as words. See DOCUMENTATION."""

from __future__ import annotations

from typing import Any

from ansible import context
from ansible.module_utils.common.text.converters import to_text
from ansible.parsing.splitter import parse_kv
from ansible.plugins.lookup import LookupBase

DOCUMENTATION = r"""
name: extra_vars
short_description: Read the words of each -e
description:
  - Ansible ends a value of C(-e name=value) at a blank, and takes the words after it for other variables, or for none.
  - Files (C(-e @file)), JSON and YAML are left out.
author: karpstack (@karpstack)
version_added: 0.3.0
"""

EXAMPLES = r"""
- name: Show the words
  ansible.builtin.debug:
    msg: "{{ query('karpstack.scale_test.extra_vars') }}"
"""

RETURN = r"""
_raw:
  description:
    - For each C(-e), its C(text) and the C(names) of its variables. C(_raw_params) stands for words without a name.
  type: list
  elements: dict
"""


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible has no types
    """The lookup."""

    def run(self, terms: Any, variables: Any = None, **kwargs: Any) -> list[dict[str, Any]]:
        """Return what was given, in its order."""
        texts = (to_text(given).strip() for given in context.CLIARGS.get("extra_vars") or ())
        return [{"text": text, "names": sorted(parse_kv(text))} for text in texts if text and text[0] not in "@[{"]
