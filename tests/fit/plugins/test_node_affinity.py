"""NodeAffinity: affinity that a profile adds to every pod."""

from __future__ import annotations

from bayplan.fit import PluginSet
from bayplan.fit.evaluation.verdicts import Verdicts
from bayplan.fit.plugins.node_affinity import AddedAffinity
from bayplan.kube.nodes import NodeSelector, PreferredSchedulingTerm
from bayplan.kube.pods import NodeAffinity
from tests.builders import node_term
from tests.fit.plugins.scores import ZONE, only, scored, two_nodes, wanting


def test_added_affinity_binds_every_pod() -> None:
    snapshot, pod = two_nodes(), wanting().obj()
    required = NodeAffinity(required=NodeSelector(node_selector_terms=[node_term(ZONE, "In", "b")]))
    plugins = PluginSet(args=(AddedAffinity.of(required),))
    assert snapshot.decide(pod, plugins=plugins).node == "busy"
    said = snapshot.verdicts(pod, plugins=plugins)
    assert isinstance(said, Verdicts)
    reasons = said.refusals["idle"].reasons
    assert reasons == ("node(s) didn't match scheduler-enforced node affinity",)
    liked = PreferredSchedulingTerm(weight=5, preference=node_term(ZONE, "In", "b"))
    wish = AddedAffinity.of(NodeAffinity(preferred=[liked]))
    assert scored(snapshot, pod, only("NodeAffinity", wish)) == {
        "idle": 0,
        "busy": 100,
    }
