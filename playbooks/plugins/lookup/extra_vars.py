"""Ansible lookup: the variables that were given with -e. See DOCUMENTATION."""

from __future__ import annotations

from typing import Any

from ansible import context
from ansible.module_utils.common.text.converters import to_text
from ansible.parsing.splitter import parse_kv
from ansible.plugins.lookup import LookupBase
from ansible.utils.vars import load_extra_vars

DOCUMENTATION = r"""
name: extra_vars
short_description: Read what was given with -e, and which playbooks
description:
  - Ansible ends a value of C(-e name=value) at a blank, and takes the words after it for other variables, or for none.
author: karpstack (@karpstack)
version_added: 0.3.0
"""

EXAMPLES = r"""
- name: Show the words
  ansible.builtin.debug:
    msg: "{{ lookup('karpstack.scale_test.extra_vars') }}"
"""

RETURN = r"""
_raw:
  description:
    - C(names) has the names of all variables, also of those in files (C(-e @file)), in JSON and in YAML.
    - C(words) has, of each C(-e) of another form, the C(text) and the C(names) of its variables. C(_raw_params) stands
      for words without a name.
    - C(playbooks) has the playbooks on the command line.
  type: list
  elements: dict
"""


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible has no types
    """The lookup."""

    def run(self, terms: Any, variables: Any = None, **kwargs: Any) -> list[dict[str, Any]]:
        """Return what was given."""
        texts = (to_text(given) for given in context.CLIARGS.get("extra_vars") or ())
        words = [{"text": text, "names": sorted(parse_kv(text))} for text in texts if text and text[0] not in "@[{"]
        playbooks = list(map(to_text, context.CLIARGS.get("args") or ()))
        return [{"names": sorted(load_extra_vars(self._loader)), "words": words, "playbooks": playbooks}]
