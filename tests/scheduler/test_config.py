"""A KubeSchedulerConfiguration is honoured, warned of or refused; never half-heard."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.configfiles import ConfigFileError
from bayplan.fit import PluginSet
from bayplan.fit.plugins.node_resources_fit.arguments import ResourceFitSettings, StrategyType
from bayplan.fit.plugins.registry import bind_timeout
from bayplan.fit.preemption import CandidateBounds
from bayplan.fit.requirements.default_spread import SpreadDefaults
from bayplan.scheduler.config import SchedulerSettings, default_settings, parse_settings, plugin_set
from bayplan.scheduler.config.plugins import PLUGINS

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
DEFAULT_SCORES = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
DEFAULT_FILTERS = {
    "NodeName",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
}


def read(text: str = "") -> SchedulerSettings:
    return parse_settings((HEAD + text).encode(), "config.yaml")


def refusal(text: str) -> str:
    with pytest.raises(ConfigFileError) as caught:
        read(text)
    return str(caught.value)


def plugins(text: str) -> str:
    return "profiles:\n- plugins:\n" + "\n".join(f"    {line}" for line in text.splitlines())


def args(name: str, text: str) -> str:
    said = "\n".join(f"      {line}" for line in text.splitlines())
    return f"profiles:\n- pluginConfig:\n  - name: {name}\n    args:\n{said}"


def test_without_a_word_it_is_kube_scheduler() -> None:
    settings = read()
    (profile,) = settings.profiles
    assert profile.name == "default-scheduler"
    assert profile.filters == DEFAULT_FILTERS
    assert profile.scores == DEFAULT_SCORES
    assert profile.preempts
    assert (settings.backoff.initial, settings.backoff.most) == (1.0, 10.0)
    assert (settings.leader.elect, settings.leader.name) == (True, "kube-scheduler")
    assert settings.warnings == ()


def test_without_a_file_it_serves_its_own_name_and_has_its_own_lease() -> None:
    settings = default_settings()
    assert [profile.name for profile in settings.profiles] == ["bayplan"]
    assert settings.leader.name == "bayplan-scheduler"
    several = default_settings(["bayplan", "default-scheduler"])
    assert several.profile("default-scheduler") is several.profiles[1]
    assert several.profile("another") is None
    assert several.leader.name == "kube-scheduler"


def test_several_profiles_differ_in_plugins_and_weights() -> None:
    settings = read("""
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  plugins:
    score:
      disabled: [{name: ImageLocality}]
      enabled: [{name: NodeAffinity, weight: 7}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 3}, {name: nvidia.com/gpu, weight: 0}]
""")
    plain, packing = settings.profiles
    assert plain.scores == DEFAULT_SCORES
    expected = {**DEFAULT_SCORES, "NodeAffinity": 7}
    del expected["ImageLocality"]
    assert dict(packing.scores) == expected
    strategy = plugin_set(packing).args_of(ResourceFitSettings).strategy
    assert strategy.type is StrategyType.MOST_ALLOCATED
    assert strategy.resources == (("cpu", 3), ("nvidia.com/gpu", 1))
    assert plugin_set(plain).args == ()


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        (("score: {disabled: [{name: '*'}]\n, enabled: [{name: NodeAffinity, weight: 4}]}\n"
          "preScore: {disabled: [{name: '*'}]\n, enabled: [{name: NodeAffinity}]}"),
         {"NodeAffinity": 4}),
        # A plugin that is named at its point without a weight counts once, as in kube-scheduler.
        ("score: {enabled: [{name: TaintToleration}]}", {**DEFAULT_SCORES, "TaintToleration": 1}),
        ("multiPoint: {enabled: [{name: TaintToleration, weight: 9}]}",
         {**DEFAULT_SCORES, "TaintToleration": 9}),
        (("multiPoint: {enabled: [{name: TaintToleration, weight: 9}]}\n"
          "score: {enabled: [{name: TaintToleration, weight: 5}]}"),
         {**DEFAULT_SCORES, "TaintToleration": 5}),
    ],
)  # fmt: skip
def test_weights_are_settled_as_kube_scheduler_settles_them(
    text: str, scores: dict[str, int]
) -> None:
    (profile,) = read(plugins(text)).profiles
    assert dict(profile.scores) == scores


def test_a_plugin_can_be_switched_off_everywhere_at_once() -> None:
    off = "multiPoint: {disabled: [{name: PodTopologySpread}, {name: DefaultPreemption}]}"
    (profile,) = read(plugins(off)).profiles
    assert profile.filters == DEFAULT_FILTERS - {"PodTopologySpread"}
    assert "PodTopologySpread" not in profile.scores
    assert not profile.preempts


def test_what_is_switched_off_at_all_points_can_be_chosen_anew() -> None:
    text = """
multiPoint:
  disabled: [{name: '*'}]
  enabled: [{name: SchedulingGates}, {name: PrioritySort}, {name: DefaultBinder}, {name: NodeName}]
"""
    (profile,) = read(plugins(text)).profiles
    assert profile.filters == {"NodeName"}
    assert dict(profile.scores) == {}


def test_what_we_have_not_can_be_switched_off() -> None:
    read(plugins("multiPoint: {disabled: [{name: DynamicResources}]}"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("extenders: [{urlPrefix: http://x}]", "config.yaml:3: extenders: are not supported"),
        ("percentageOfNodes: 5", "percentageOfNodes: unknown field"),
        ("profiles: [{schedulerName: a}, {schedulerName: a}]", "profiles[1].schedulerName"),
        ("profiles: [{}, {schedulerName: a}]", "profiles[0].schedulerName: is missing"),
        ("profiles: [{schedulerName: 'a b'}]", "profiles[0].schedulerName"),
        ("podInitialBackoffSeconds: 0", "podInitialBackoffSeconds: must be more than 0"),
        ("podInitialBackoffSeconds: 11", "podMaxBackoffSeconds"),
        ("percentageOfNodesToScore: 101", "percentageOfNodesToScore: not from 0 to 100"),
        ("parallelism: 0", "parallelism"),
        ("leaderElection: {resourceLock: endpoints}", "resourceLock: must be leases"),
        ("leaderElection: {leaseDuration: 5s}", "leaderElection: leader election needs"),
        ("leaderElection: {retryPeriod: soon}", "retryPeriod: 'soon' is not a duration"),
        ("leaderElection: {resourceName: A/B}", "leaderElection.resourceName"),
        ("clientConnection: {qps: .nan}", "clientConnection.qps"),
        ("clientConnection: {burst: -1}", "clientConnection.burst"),
        ("clientConnection: {burst: many}", "clientConnection.burst: expected int"),
        (plugins("filter: {enabled: [{name: MyPlugin}]}"),
         "profiles[0].plugins.filter.enabled[0].name: there is no plugin 'MyPlugin'"),
        (plugins("filter: {disabled: [{name: MyPlugin}]}"),
         "profiles[0].plugins.filter.disabled[0].name: there is no plugin"),
        (plugins("filter: {enabled: [{name: EBSLimits}]}"), "was removed"),
        (plugins("filter: {enabled: [{name: DynamicResources}]}"), "that Bayplan has not"),
        (plugins("filter: {enabled: [{name: ImageLocality}]}"), "nothing to do at filter"),
        (plugins("score: {enabled: [{name: ImageLocality}, {name: ImageLocality}]}"), "twice"),
        (plugins("score: {enabled: [{name: ImageLocality, weight: -1}]}"), "weight"),
        (plugins("filter: {disabled: [{name: NodePorts}]}"),
         "NodePorts must be on, or off, at all of preFilter, filter"),
        (plugins("preBind: {disabled: [{name: VolumeBinding}]}"), "VolumeBinding must be on"),
        (plugins("queueSort: {disabled: [{name: '*'}]}"), "PrioritySort cannot be replaced"),
        (plugins("bind: {disabled: [{name: '*'}]}"), "DefaultBinder cannot be replaced"),
        (plugins("preEnqueue: {disabled: [{name: SchedulingGates}]}"), "SchedulingGates cannot"),
        (plugins("permit: {enabled: [{name: NodeName}]}"), "nothing to do at permit"),
        (args("NodeName", "a: 1"), "NodeName takes none"),
        (args("Mine", "a: 1"), "there is no plugin 'Mine'"),
        (args("NodeResourcesFit", "a: 1"), "profiles[0].pluginConfig[0].args.a: unknown field"),
        (args("NodeResourcesFit", "kind: NodeAffinityArgs"), "must be NodeResourcesFitArgs"),
        (args("NodeResourcesFit", "scoringStrategy: {type: Best}"), "must be one of LeastAlloc"),
        (args("NodeResourcesFit", "scoringStrategy: {resources: [{name: cpu, weight: 101}]}"),
         "scoringStrategy.resources[0].weight"),
        (args("NodeResourcesFit", "scoringStrategy: {type: RequestedToCapacityRatio}"),
         "requestedToCapacityRatio.shape: needs at least one point"),
        (args("NodeResourcesFit",
              "scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: "
              "{shape: [{utilization: 5, score: 1}, {utilization: 5, score: 2}]}}"),
         "shape[1].utilization: must be more than the one before"),
        (args("NodeResourcesFit",
              "scoringStrategy: {requestedToCapacityRatio: {shape: []}}"), "is only for the type"),
        (args("NodeResourcesFit", "ignoredResourceGroups: [a/b]"), "ignoredResourceGroups"),
        (args("NodeResourcesBalancedAllocation", "resources: [{name: cpu, weight: 2}]"),
         "resources[0].weight: must be 1"),
        (args("InterPodAffinity", "hardPodAffinityWeight: 101"), "hardPodAffinityWeight"),
        (args("NodeAffinity", "addedAffinity: {required: {}}"),
         "args.addedAffinity.required: unknown field"),
        (args("NodeAffinity",
              "addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
              "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, valuse: [b]}]}]}}"),
         "nodeSelectorTerms[0].matchExpressions[0].valuse: unknown field"),
        (args("NodeAffinity",
              "addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
              "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}"),
         "args.addedAffinity: "),
        (args("PodTopologySpread", "defaultConstraints: [{maxSkew: 1, topologyKey: a, "
              "whenUnsatisfiable: DoNotSchedule}]"), "defaultingType: must be List"),
        (args("PodTopologySpread", "defaultingType: List\ndefaultConstraints: [{maxSkew: 0, "
              "topologyKey: a, whenUnsatisfiable: DoNotSchedule}]"), "maxSkew: must be more"),
        (args("PodTopologySpread", "defaultingType: List\ndefaultConstraints: [{maxSkew: 1, "
              "topologyKey: a, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]"),
         "labelSelector: is deduced"),
        (args("VolumeBinding", "bindTimeoutSeconds: -1"), "bindTimeoutSeconds"),
        (args("VolumeBinding", "shape: []"), "StorageCapacityScoring"),
        (args("DefaultPreemption",
              "minCandidateNodesPercentage: 0\nminCandidateNodesAbsolute: 0"), "must not be 0"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_its_place(text: str, said: str) -> None:
    assert said in refusal(text)


def test_another_kind_of_file_is_refused() -> None:
    with pytest.raises(ConfigFileError, match="must be a KubeSchedulerConfiguration"):
        parse_settings(b"apiVersion: v1\nkind: Pod\n", "pod.yaml")


def test_what_makes_no_difference_is_named() -> None:
    settings = read("""
percentageOfNodesToScore: 50
parallelism: 8
enableProfiling: true
clientConnection: {contentType: application/vnd.kubernetes.protobuf}
""")
    said = " ".join(settings.warnings)
    for word in ("percentageOfNodesToScore", "parallelism", "enableProfiling", "contentType"):
        assert word in said


def test_numbers_and_names_are_heeded() -> None:
    settings = read("""
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 60
delayCacheUntilActive: true
clientConnection: {kubeconfig: /etc/kube, qps: 500, burst: 1000}
leaderElection:
  leaderElect: false
  resourceName: mine
  resourceNamespace: system
  leaseDuration: 1m
  renewDeadline: 30s
  retryPeriod: 5s
""")
    assert (settings.backoff.initial, settings.backoff.most) == (2.0, 60.0)
    assert (settings.qps, settings.burst, settings.kubeconfig) == (500.0, 1000, "/etc/kube")
    assert settings.warnings == ()
    (warning,) = read("delayCacheUntilActive: false").warnings
    assert warning.startswith("delayCacheUntilActive: ")
    leader = settings.leader
    assert (leader.elect, leader.namespace, leader.name) == (False, "system", "mine")
    assert (leader.timing.lease_duration, leader.timing.renew_deadline) == (60.0, 30.0)
    assert read("clientConnection: {qps: -1}").qps == math.inf


def test_arguments_of_plugins_are_heeded() -> None:
    spread = plugins_of(args("PodTopologySpread", "defaultingType: List"))
    assert spread.args_of(SpreadDefaults).constraints == ()
    assert plugins_of().args_of(SpreadDefaults).constraints is None
    text = """
defaultingType: List
defaultConstraints: [{maxSkew: 3, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
"""
    defaults = plugins_of(args("PodTopologySpread", text)).args_of(SpreadDefaults)
    (constraint,) = defaults.constraints or ()
    assert (constraint.max_skew, constraint.topology_key) == (3, "zone")
    bound = plugins_of(args("VolumeBinding", "bindTimeoutSeconds: 30"))
    assert (bind_timeout(bound), bind_timeout(plugins_of())) == (30.0, 600.0)
    few = plugins_of(args("DefaultPreemption", "minCandidateNodesAbsolute: 7"))
    assert few.args_of(CandidateBounds) == CandidateBounds(percentage=10, absolute=7)
    ratio = """
scoringStrategy:
  type: RequestedToCapacityRatio
  requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
"""
    settings = plugins_of(args("NodeResourcesFit", ratio)).args_of(ResourceFitSettings)
    assert settings.strategy.shape == ((0, 0), (100, 10))


def plugins_of(text: str = "") -> PluginSet:
    """Return the plugins of the first profile."""
    return plugin_set(read(text).profiles[0])


POINTS = st.sampled_from(["multiPoint", "filter", "score", "preScore", "preFilter", "bind", "no"])


@given(
    st.dictionaries(
        POINTS,
        st.fixed_dictionaries(
            {},
            optional={
                "enabled": st.lists(
                    st.fixed_dictionaries(
                        {"name": st.sampled_from([*PLUGINS, "Mine"])},
                        optional={"weight": st.integers(-2, 200)},
                    ),
                    max_size=3,
                ),
                "disabled": st.lists(
                    st.fixed_dictionaries({"name": st.sampled_from([*PLUGINS, "*"])}), max_size=3
                ),
            },
        ),
        max_size=3,
    )
)
def test_any_choice_is_either_refused_with_its_place_or_sound(
    choices: dict[str, dict[str, list[dict[str, object]]]],
) -> None:
    body = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": choices}],
    }
    settings, refused = default_settings(), ""
    try:
        settings = parse_settings(msgspec.json.encode(body), "c")
    except ConfigFileError as error:
        refused = error.field
    assert not refused or refused.startswith("profiles[0].plugins")
    (profile,) = settings.profiles
    assert profile.filters <= DEFAULT_FILTERS | {"NodeDeclaredFeatures"}  # off by default
    assert set(profile.scores) <= set(DEFAULT_SCORES)
    assert all(weight > 0 for weight in profile.scores.values())


def test_what_counts_for_less_than_it_says_is_warned_of_with_its_place() -> None:
    heavy = read(plugins("score:\n  enabled: [{name: ImageLocality, weight: 20000}]"))
    (warning,) = heavy.warnings
    assert warning.startswith("profiles[0].plugins: ImageLocality's weight 20000 counts as 10000")
    constraint = (
        "- {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, matchLabelKeys: [a]}"
    )
    keyed = args("PodTopologySpread", f"defaultingType: List\ndefaultConstraints:\n{constraint}")
    (warning,) = read(keyed).warnings
    assert warning.startswith("profiles[0].pluginConfig: matchLabelKeys")
