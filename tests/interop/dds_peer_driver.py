"""A client on CycloneDDS 0.10.2 with the vendor's types, in a process of its own, as lines of JSON.

    python dds_peer_driver.py DOMAIN CALLS     ask, list, teach, play and stop; stay; then leave

It knows nothing of rote. Its types are declared as the vendor's Python package declares them, with
`uint8`, its QoS is the library's own, and it has endpoints on every topic that rote uses. It says
"ready" when the robot is there, "toured" with what it saw, and then stays, hearing the robot's
states, until its standard input ends: "done" means that it lived.
"""

import json
import os
import sys
import threading
import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

# mypy: ignore-errors
# ruff: noqa: N801

os.environ["CYCLONEDDS_URI"] = (
    "<CycloneDDS><Domain Id='any'><General><Interfaces><NetworkInterface name='lo'/></Interfaces>"
    "</General></Domain></CycloneDDS>"
)

from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct, annotations, types
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

API, HG = "unitree_api.msg.dds_.", "unitree_hg.msg.dds_."
ARM, SPORT, SWITCHER = "arm", "sport", "motion_switcher"
PERFORM, LIST, PLAY, RENAME, TEACH, PAUSE, DELETE, STOP = range(7106, 7114)
PATIENCE_S = 30.0


def final(kind):
    return dataclass(annotations.final(annotations.autoid("sequential")(kind)))


@final
class RequestIdentity_(IdlStruct, typename=API + "RequestIdentity_"):
    id: types.int64
    api_id: types.int64


@final
class RequestLease_(IdlStruct, typename=API + "RequestLease_"):
    id: types.int64


@final
class RequestPolicy_(IdlStruct, typename=API + "RequestPolicy_"):
    priority: types.int32
    noreply: bool


@final
class RequestHeader_(IdlStruct, typename=API + "RequestHeader_"):
    identity: RequestIdentity_
    lease: RequestLease_
    policy: RequestPolicy_


@final
class Request_(IdlStruct, typename=API + "Request_"):
    header: RequestHeader_
    parameter: str
    binary: types.sequence[types.uint8]


@final
class ResponseStatus_(IdlStruct, typename=API + "ResponseStatus_"):
    code: types.int32


@final
class ResponseHeader_(IdlStruct, typename=API + "ResponseHeader_"):
    identity: RequestIdentity_
    status: ResponseStatus_


@final
class Response_(IdlStruct, typename=API + "Response_"):
    header: ResponseHeader_
    data: str
    binary: types.sequence[types.uint8]


@final
class String_(IdlStruct, typename="std_msgs.msg.dds_.String_"):
    data: str


@final
class MotorState_(IdlStruct, typename=HG + "MotorState_"):
    mode: types.uint8
    q: types.float32
    dq: types.float32
    ddq: types.float32
    tau_est: types.float32
    temperature: types.array[types.int16, 2]
    vol: types.float32
    sensor: types.array[types.uint32, 2]
    motorstate: types.uint32
    reserve: types.array[types.uint32, 4]


@final
class IMUState_(IdlStruct, typename=HG + "IMUState_"):
    quaternion: types.array[types.float32, 4]
    gyroscope: types.array[types.float32, 3]
    accelerometer: types.array[types.float32, 3]
    rpy: types.array[types.float32, 3]
    temperature: types.int16


@final
class LowState_(IdlStruct, typename=HG + "LowState_"):
    version: types.array[types.uint32, 2]
    mode_pr: types.uint8
    mode_machine: types.uint8
    tick: types.uint32
    imu_state: IMUState_
    motor_state: types.array[MotorState_, 35]
    wireless_remote: types.array[types.uint8, 40]
    reserve: types.array[types.uint32, 4]
    crc: types.uint32


@final
class MotorCmd_(IdlStruct, typename=HG + "MotorCmd_"):
    mode: types.uint8
    q: types.float32
    dq: types.float32
    tau: types.float32
    kp: types.float32
    kd: types.float32
    reserve: types.uint32


@final
class LowCmd_(IdlStruct, typename=HG + "LowCmd_"):
    mode_pr: types.uint8
    mode_machine: types.uint8
    motor_cmd: types.array[MotorCmd_, 35]
    reserve: types.array[types.uint32, 4]
    crc: types.uint32


@final
class SportModeState_(IdlStruct, typename=HG + "SportModeState_"):
    fsm_id: types.uint32
    fsm_mode: types.uint32
    task_id: types.uint32
    task_time: types.float32


@final
class BmsState_(IdlStruct, typename=HG + "BmsState_"):
    version_high: types.uint8
    version_low: types.uint8
    fn: types.uint8
    cell_vol: types.array[types.uint16, 40]
    bmsvoltage: types.array[types.uint32, 3]
    current: types.int32
    soc: types.uint8
    soh: types.uint8
    temperature: types.array[types.int16, 12]
    cycle: types.uint16
    manufacturer_date: types.uint16
    bmsstate: types.array[types.uint32, 5]
    reserve: types.array[types.uint32, 3]


TOPICS = {
    "rt/lowstate": LowState_,
    "rt/arm_sdk": LowCmd_,
    "rt/arm/action/state": String_,
    "rt/sportmodestate": SportModeState_,
    "rt/lf/bmsstate": BmsState_,
}


class Peer:
    def __init__(self, domain: int) -> None:
        self.participant = DomainParticipant(domain)
        self.readers = {
            name: DataReader(self.participant, Topic(self.participant, name, kind))
            for name, kind in TOPICS.items()
        }
        self.arms = DataWriter(self.participant, Topic(self.participant, "rt/arm_sdk", LowCmd_))
        self.services = {}
        for service in (ARM, SPORT, SWITCHER):
            ask = Topic(self.participant, f"rt/api/{service}/request", Request_)
            answer = Topic(self.participant, f"rt/api/{service}/response", Response_)
            self.services[service] = (
                DataWriter(self.participant, ask),
                DataReader(self.participant, answer),
            )
        self.number = time.monotonic_ns()

    def wait_until(self, what, within_s=PATIENCE_S):
        until = time.monotonic() + within_s
        while not (found := what()):
            if time.monotonic() > until:
                return None
            time.sleep(0.001)
        return found

    def meet(self) -> None:
        """Ask until everybody answers: who is discovered a moment later hears nothing before."""
        for service in self.services:
            met = self.wait_until(lambda each=service: self.ask(each, 1, within_s=0.5)[0] == 0)
            assert met, f"{service} does not answer"

    def ask(
        self, service: str, api: int, parameter: str = "", within_s: float = 10.0
    ) -> tuple[int, str]:
        writer, reader = self.services[service]
        self.number += 1
        identity = RequestIdentity_(self.number, api)
        header = RequestHeader_(identity, RequestLease_(0), RequestPolicy_(0, False))
        writer.write(Request_(header, parameter, []))
        found = self.wait_until(lambda: self.answer(reader), within_s)
        return (3104, "") if found is None else found

    def answer(self, reader):
        for sample in reader.take(16):
            if isinstance(sample, Response_) and sample.header.identity.id == self.number:
                return sample.header.status.code, sample.data
        return None

    def state(self) -> dict[str, Any]:
        """What the arms do now."""
        texts = [s for s in self.readers["rt/arm/action/state"].take(16) if isinstance(s, String_)]
        return json.loads(texts[-1].data) if texts else {}

    def wait_for_state(self, number: int) -> bool:
        return bool(self.wait_until(lambda: self.state().get("id") == number))

    def joints(self) -> LowState_ | None:
        samples = [s for s in self.readers["rt/lowstate"].take(16) if isinstance(s, LowState_)]
        return samples[-1] if samples else None


def say(event: str, **more: Any) -> None:
    print(json.dumps({"event": event, **more}), flush=True)


def tour(peer: Peer, calls: int) -> None:
    name = json.dumps({"action_name": "theirs"})
    codes = [peer.ask(ARM, 1)[0] for _ in range(calls)]
    seen: dict[str, Any] = {"answered": codes.count(0), "version": peer.ask(ARM, 1)[1]}
    seen["fsm"] = json.loads(peer.ask(SPORT, 7001)[1])["data"]
    seen["controller"] = json.loads(peer.ask(SWITCHER, 1001)[1])["name"]
    seen["unknown"] = peer.ask(ARM, 7106, '{"data": 4242}')[0]
    started = peer.ask(ARM, TEACH, name)[0]
    taught = peer.wait_for_state(-1)
    kept = peer.ask(ARM, TEACH, '{"action_name": ""}')[0]
    time.sleep(1.0)
    seen["teach"] = [started, taught, kept, peer.ask(ARM, TEACH, "")[0]]
    peer.wait_for_state(0)  # until then a robot neither lists nor plays it
    seen["taught"] = [each["name"] for each in json.loads(peer.ask(ARM, LIST, "{}")[1])[1]]
    played = peer.ask(ARM, PLAY, name)[0]
    playing = peer.wait_for_state(100)
    seen["play"] = [played, playing, peer.ask(ARM, STOP)[0], peer.wait_for_state(99)]
    peer.wait_for_state(0)
    joints = peer.wait_until(peer.joints)
    seen["joints"] = [joints.mode_machine, len(joints.motor_state)]
    say("toured", **seen)


def main(domain: int, calls: int) -> None:
    left = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), left.set()), daemon=True).start()
    peer = Peer(domain)
    peer.meet()
    say("ready", version=version("cyclonedds"))
    tour(peer, calls)
    heard = 0
    while not left.wait(0.01):
        heard += peer.joints() is not None
    say("done", heard=heard)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
