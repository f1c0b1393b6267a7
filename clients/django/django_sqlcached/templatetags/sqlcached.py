"""``{% load sqlcached %}``"""

from __future__ import annotations

from typing import Any, Optional

from django import template
from django.template.base import FilterExpression, Node, NodeList, Parser, Token, token_kwargs
from django.utils.safestring import SafeString, mark_safe

from ..fragments import MISSING, Fragment, registry

register = template.Library()

#: Arguments of the tag that are no fields.
OPTIONS = ("tags", "timeout", "refresh_before")


class FragmentNode(Node):
    """A part of a template whose output is kept."""

    def __init__(self, kind: "type[Fragment]", nodelist: NodeList, arguments: dict[str, FilterExpression]) -> None:
        self.kind, self.nodelist, self.arguments = kind, nodelist, arguments

    def render(self, context: template.Context) -> SafeString:
        given = {name: value.resolve(context) for name, value in self.arguments.items()}
        tags = given.pop("tags", None)
        tags = [tags] if isinstance(tags, str) else tags
        timeout = given.pop("timeout", MISSING)
        refresh: Any = given.pop("refresh_before", 0)

        def compute() -> str:
            return str(self.nodelist.render(context))

        return mark_safe(self.kind.get_or_set(compute, tags=tags, timeout=timeout, refresh_before=refresh, **given))


@register.tag
def fragment(parser: Parser, token: Token) -> FragmentNode:
    """Keeps the output of a block in a fragment::

        {% fragment ProductFragment part="price" page=p.pk user=u.pk tags=p.tags %}
          ...
        {% endfragment %}

    ``tags``, ``timeout`` and ``refresh_before`` are options; everything else is a field.
    """
    words = token.split_contents()
    kind = _kind(words[1] if len(words) > 1 else None)
    arguments = token_kwargs(words[2:], parser)
    if len(arguments) != len(words) - 2:
        raise template.TemplateSyntaxError("fragment takes the name of a fragment, and then name=value")
    unknown = sorted(set(arguments) - set(OPTIONS) - set(kind.fields))
    if unknown:
        raise template.TemplateSyntaxError(f"{kind.__name__} has no field {', '.join(unknown)}")
    nodelist = parser.parse(("endfragment",))
    parser.delete_first_token()
    return FragmentNode(kind, nodelist, arguments)


def _kind(word: Optional[str]) -> "type[Fragment]":
    """The class of a name, with quotation marks or without."""
    name = (word or "").strip("\"'")
    if name not in registry:
        known = ", ".join(sorted(registry)) or "none"
        raise template.TemplateSyntaxError(f"there is no fragment {name!r}; declared in apps' fragments.py: {known}")
    return registry[name]
