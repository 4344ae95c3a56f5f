"""What a topology may ask for and not every provider has: each says which, and whatever it has not is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_provider import FakeProvider
from minigts import lab as labs
from minigts.errors import EnvironmentLacks, InputError
from minigts.providers import registry, supported
from minigts.providers.base import CARRIERS, Provider
from minigts.topology.host_settings import FEATURES
from minigts.topology.plan.plan import Plan
from minigts.topology.read.load import parse
from minigts.topology.time import Time

ASKING = {
    "a share of a processor": "time: real\npair: {host: {cpus: 0.5}}",
    "several processors": "pair: {host: {cpus: 2}}",
    "memory of its own": "pair: {host: {memory: 256MB}}",
    "a modelled processor": "time: virtual\npair: {host: {processor: {frame: 1us}}}",
    "a way out": "time: real\npair: {host: {gateway: true}}",
    "sysctls of a kernel of its own": 'pair: {host: {sysctls: {net.core.rmem_max: "4194305"}}}',
    "accurate ECN": "time: virtual\npair: {host: {ecn: accurate}}",
    "a disk with a cache": "time: virtual\npair: {host: {disk: cached}}",
    "light hosts": "time: virtual\npair: {host: {light: true}}",
    "a kernel by name": "pair: {host: {kernel: mine}}",
    "an image of its own": "pair: {host: {image: a.tar}}",
    "the queue discipline pie": "pair: {link: {rate: 9mbit, queue: {discipline: pie}}}",
    "packages": "pair: {host: {packages: [curl]}}",
    "name servers": "dns: true\npair: {}",
    "an interface eth0": "hosts: {h1: , h2: }\nlinks: [{ends: [h1, h2], interfaces: {h1: eth0, h2: eth0}}]",
}
TIMES: dict[str, Time | None] = {feature.name: feature.only for feature in FEATURES}
PROVIDERS = [
    pytest.param(FakeProvider(Path("fake")), "real", id="fake"),
    *(pytest.param(registry.make(name, Path(name)), "real", id=name) for name in registry.names()),
    *(
        pytest.param(registry.make(name, Path(name), "virtual"), "virtual", id=f"{name}-virtual")
        for name in registry.names()
        if registry.has_virtual_time(name)
    ),
]


def asking(feature: str) -> Plan:
    return parse(f"name: asking\n{ASKING[feature]}\n", "asking.yaml")


def test_each_feature_is_asked_for_here() -> None:
    assert {*ASKING, CARRIERS} == set(supported.names())
    assert {name: [each.feature for each in supported.required_features(asking(name))] for name in ASKING} == {
        name: [name] for name in ASKING
    }


@pytest.mark.parametrize(("provider", "time"), PROVIDERS)
def test_a_provider_says_of_each_feature_whether_it_has_it_or_why_not(provider: Provider, time: Time) -> None:
    has, has_not = provider.supports.features, set(provider.supports.why_not)
    of_the_other_time = {name for name, only in TIMES.items() if only not in (None, time)}
    assert not has & has_not
    assert has | has_not | of_the_other_time == set(supported.names())
    assert not has & of_the_other_time


@pytest.mark.parametrize(("provider", "time"), PROVIDERS)
@pytest.mark.parametrize("feature", ASKING)
def test_what_it_has_not_is_refused_with_the_host_the_reason_and_who_has_it(
    provider: Provider, time: Time, feature: str
) -> None:
    plan, supports = asking(feature), provider.supports
    if feature in supports.features:
        supported.require(plan, provider.name, supports)
        return
    with pytest.raises(EnvironmentLacks) as refused:
        supported.require(plan, provider.name, supports)
    said = str(refused.value)
    assert "h1, h2 with `" in said or "h1-h2 with `queue.discipline: pie`" in said
    assert f"provider {provider.name} does not support {feature}, since " in said
    assert supports.why_not.get(feature, "since") in said
    assert said.count("\n") == 0
    others = [each.name for each in registry.every(Path()) if feature in each.supports.features]
    assert others == [] or f"provider {others[0]} does" in said or f"{others[0]} and" in said


@pytest.mark.parametrize("name", registry.names())
@pytest.mark.parametrize("feature", ASKING)
def test_up_refuses_it_before_anything_is_made(
    name: str, feature: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path))
    plan = asking(feature)
    known = plan.time == "real" or registry.has_virtual_time(name)
    if known and feature in registry.make(name, tmp_path, plan.time).supports.features:
        pytest.skip("it has it")
    with pytest.raises(EnvironmentLacks if known else InputError):
        labs.up(plan, name, None, lambda _: None)
    assert not [path for path in tmp_path.rglob("*") if not path.name.endswith(".lock")]
