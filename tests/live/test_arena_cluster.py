"""An incident of a cluster of Kubernetes: present, seen by kubectl, mended by a call and answered by the object's name,
and the same again in a new lab."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.program import Program

pytestmark = [
    *(pytest.mark.virtual, pytest.mark.compiled, pytest.mark.nightly, pytest.mark.timeout(1800)),
    pytest.mark.touched("tools/minigts/arena", "provision/overlays/kubernetes"),
]
LOOK = "command=kubectl get pods,services,endpointslices -A -o wide"
MEND = """command=kubectl patch service web --type json -p \
'[{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 5201}]'"""


def test_a_service_with_a_wrong_port_is_found_and_mended(program: Program, tmp_path: Path) -> None:
    told = program.succeeds("arena", "start", "kubernetes/12", "--agent", "ana")
    assert "the Service web" in told and "clusterIP: 172.30.10.1" in told
    call = ("arena", "call", "run", "host=gva")
    seen = program.succeeds(*call, LOOK)
    assert "8081" in next(line for line in seen.splitlines() if "endpointslice.discovery.k8s.io/web-" in line)
    program.succeeds(*call, MEND)
    wrong = program.run("arena", "answer", "--fault", "service-port@service/wob")
    assert wrong.returncode == 2 and "did you mean 'service/web'" in wrong.stderr
    file = tmp_path / "kubernetes-12.jsonl"
    said = program.succeeds("arena", "answer", "--fault", "service-port@service/web", "-o", str(file))
    assert "points: 1, by 2 calls" in said and "solved" in said
