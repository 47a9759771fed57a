"""All that names kinds names them as the one table does."""

from __future__ import annotations

import pytest

from bayplan.client.resources import resource_of
from bayplan.deploy.roles import BY_COMPONENT, Roles
from bayplan.embedded.apiserver.kinds.builtin import BUILTIN
from bayplan.kube.codec import KINDS
from bayplan.kube.kinds import NAMES, names_of

CUSTOM = {"scheduling.volcano.sh", "bayplan.io"}
CLUSTER_API = "cluster.x-k8s.io"


def test_no_kind_stands_twice() -> None:
    assert len({(one.group, one.kind) for one in NAMES}) == len(NAMES)
    assert len({one.resource for one in NAMES}) == len(NAMES)


def test_types_and_requests_have_the_tables_names() -> None:
    for kind in KINDS.values():
        names, resource = names_of(kind.name), resource_of(kind.type)
        assert (kind.api_version, kind.namespaced) == (names.api_version, names.namespaced)
        assert str(resource) == names.resource


def test_the_server_serves_every_kind_that_no_crd_defines() -> None:
    served = {(one.group, one.version, one.kind, one.plural, one.namespaced) for one in BUILTIN}
    assert served == {tuple(one) for one in NAMES if one.group not in CUSTOM}


@pytest.mark.parametrize("roles", BY_COMPONENT.values(), ids=BY_COMPONENT)
def test_roles_name_resources_that_there_are(roles: Roles) -> None:
    known = {(one.group, one.plural) for one in NAMES}
    for rule in (*roles.cluster, *roles.own):
        named = {(rule.group, one.partition("/")[0]) for one in rule.resources}
        assert named <= known or rule.group.endswith(CLUSTER_API), rule.reason
