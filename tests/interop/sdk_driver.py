"""The manufacturer's Python library for DDS in a process of its own, as it comes in its wheel.

    python sdk_driver.py INTERFACE DOMAIN

The wheel has the library's channels, its RPC client, its message types and its threads, but neither
the clients of a G1 nor the examples. What those send is written here from facts: the same requests
in the same order, and the same stages of the arms at the same 50 Hz, in half the time and with one
stall that a busy computer may bring.

PYTHONPATH says where the library is. It says what it saw as lines of JSON.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

ARM_SDK, LOWSTATE, ARM_STATE = "rt/arm_sdk", "rt/lowstate", "rt/arm/action/state"
ARM, SPORT, VOICE = ("arm", "1.0.0.14"), ("sport", "1.0.0.0"), ("voice", "1.0.0.0")
AUDIO, SOUND_SAMPLES = "rt/audio_msg", 16_000
SHAKE_HAND, HANDS_UP, RELEASE = 27, 15, 99
DAMP, START, LIE_TO_STAND, SQUAT_TO_STAND, ZERO_TORQUE = 1, 500, 702, 706, 0
PERIOD_S, STAGE_S = 0.02, 1.5
KP, KD, WEIGHT_SLOT = 60.0, 1.5, 29
UP_RAD = (0.0, 1.5707963, 0.0, 1.5707963, 0.0, 0.0, 0.0)
"""Of the left arm; of the right the second is negative."""
ARM_SLOTS = (*range(15, 29), 12, 13, 14)
TARGET_RAD = (*UP_RAD, 0.0, -UP_RAD[1], *UP_RAD[2:], 0.0, 0.0, 0.0)
RAISED_RAD, LOWERED_RAD = 1.3, 0.5
STALL_AT_S, STALL_S = 1.6, 0.3
PATIENCE_S = 20.0
TRIES, TIMED_OUT = 3, 3104


def library(name: str) -> Any:
    """Return a module of the library."""
    # Its first line imports a package that its wheel does not have.
    sys.modules.setdefault("unitree_sdk2py.b2", ModuleType("unitree_sdk2py.b2"))
    return import_module(f"unitree_sdk2py.{name}")


class Service:
    """A client as the library's own are made: name, version, api ids, then calls."""

    def __init__(self, service: tuple[str, str], *apis: int) -> None:
        name, version = service
        self._client = library("rpc.client").Client(name, False)
        self._client.SetTimeout(10.0)
        self._client._SetApiVerson(version)
        for api in apis:
            self._client._RegistApi(api, 0)

    def version(self) -> str:
        return str(self._client.GetServerApiVersion()[1])

    def call(self, api: int, **values: object) -> int:
        return int(self._ask(api, json.dumps(values))[0])

    def read(self, api: int) -> Any:
        return json.loads(self._ask(api, "{}")[1])

    def _ask(self, api: int, parameter: str) -> tuple[int, str]:
        """Ask, and again after a time-out: its readers keep one reply, and may lose that."""
        for _ in range(TRIES):
            code, data = self._client._Call(api, parameter)
            if code != TIMED_OUT:
                break
        return code, data

    def send(self, api: int, parameter: str, binary: list[int]) -> int:
        """Send bytes beside the parameter, and again after a time-out, as in `_ask`."""
        for _ in range(TRIES):
            code = int(self._client._CallRequestWithParamAndBin(api, parameter, binary)[0])
            if code != TIMED_OUT:
                break
        return code


class Watch:
    """What the robot says on a topic: the newest of it, and on request each message."""

    def __init__(self, topic: str, kind: Any, each: Callable[[Any], None] | None = None) -> None:
        self.newest: Any = None
        self._each = each
        self._subscriber = library("core.channel").ChannelSubscriber(topic, kind)
        self._subscriber.Init(self._take, 10)

    def _take(self, message: Any) -> None:
        if self._each is not None:
            self._each(message)
        self.newest = message

    def close(self) -> None:
        """End it: the library spends much time on each message, also if nothing reads it."""
        # Not in this thread: the library waits there for a thread of its own.
        threading.Thread(target=self._subscriber.Close, daemon=True).start()

    def wait(self, what: Any = lambda _: True) -> Any:
        until = time.monotonic() + PATIENCE_S
        while self.newest is None or not what(self.newest):
            assert time.monotonic() < until, f"{self.newest} was not what was waited for"
            time.sleep(0.01)
        return self.newest


def say(event: str, **more: Any) -> None:
    print(json.dumps({"event": event, **more}), file=OUT, flush=True)


def arm_action() -> dict[str, Any]:
    """Do what the example of the arms' actions does: a preset, two seconds, and let go."""
    arm = Service(ARM, 7106, 7107)
    texts = library("idl.std_msgs.msg.dds_").String_
    arms = Watch(ARM_STATE, texts)
    presets, _ = arm.read(7107)
    codes = []
    for preset in (SHAKE_HAND, HANDS_UP):
        codes.append(arm.call(7106, data=preset))
        time.sleep(0.5)
        codes.append(arm.call(7106, data=RELEASE))
        arms.wait(lambda said: json.loads(said.data)["id"] == 0)
    return {"version": arm.version(), "presets": len(presets), "codes": codes}


def arm7() -> dict[str, Any]:
    """Do what the example of seven-joint arms does: to zero, up, back, and let go."""
    types = library("idl.unitree_hg.msg.dds_")
    default = library("idl.default")
    publisher = library("core.channel").ChannelPublisher(ARM_SDK, types.LowCmd_)
    publisher.Init()
    states = Watch(LOWSTATE, types.LowState_)
    states.wait()
    command = default.unitree_hg_msg_dds__LowCmd_()
    best_rad = time_s = 0.0
    stalled = False
    until = time.monotonic() + PATIENCE_S
    while time_s < 7 * STAGE_S:
        # A busy computer commands more seldom than 50 Hz: the arms get there later.
        if time_s + PERIOD_S < 3 * STAGE_S or best_rad > RAISED_RAD or time.monotonic() > until:
            time_s += PERIOD_S
        now_rad = [states.newest.motor_state[slot].q for slot in ARM_SLOTS]
        best_rad = max(best_rad, now_rad[1])
        if time_s < 6 * STAGE_S:
            command.motor_cmd[WEIGHT_SLOT].q = 1.0
            for slot, q in zip(ARM_SLOTS, _stage(time_s, now_rad), strict=True):
                motor = command.motor_cmd[slot]
                motor.q, motor.dq, motor.tau, motor.kp, motor.kd = q, 0.0, 0.0, KP, KD
        else:
            command.motor_cmd[WEIGHT_SLOT].q = max(0.0, 7 - time_s / STAGE_S)
        publisher.Write(command)  # without a CRC: the wheel lacks the library that computes it
        time.sleep(PERIOD_S)
        if time_s > STALL_AT_S and not stalled:
            stalled = True
            time.sleep(STALL_S)
    lowered = states.wait(lambda said: abs(said.motor_state[ARM_SLOTS[1]].q) < LOWERED_RAD)
    states.close()
    return {
        "raised_rad": best_rad,
        "last_rad": lowered.motor_state[ARM_SLOTS[1]].q,
        "slots": len(states.newest.motor_state),
    }


def _stage(time_s: float, now_rad: list[float]) -> list[float]:
    """Return where the arms are to be: a share of the way from where they are."""
    if time_s < STAGE_S:
        share, target = time_s / STAGE_S, (0.0,) * len(ARM_SLOTS)
    elif time_s < 3 * STAGE_S:
        share, target = (time_s - STAGE_S) / (2 * STAGE_S), TARGET_RAD
    else:
        share, target = (time_s - 3 * STAGE_S) / (3 * STAGE_S), (0.0,) * len(ARM_SLOTS)
    return [share * to + (1.0 - share) * q for to, q in zip(target, now_rad, strict=True)]


def loco() -> dict[str, Any]:
    """Do what the example of the legs offers, one after the other."""
    sport = Service(SPORT, 7001, 7101, 7104, 7105, 7106)
    seen: dict[str, Any] = {"version": sport.version(), "before": sport.read(7001)["data"]}
    seen["moves"] = [
        sport.call(7105, velocity=velocity, duration=1)
        for velocity in ([0.3, 0, 0], [0, 0.3, 0], [0, 0, 0.3])
    ]
    seen["heights"] = [sport.call(7104, data=height) for height in (0, 2**32 - 1)]
    seen["tasks"] = [sport.call(7106, data=0)]
    seen["up"] = []
    for mode in (SQUAT_TO_STAND, LIE_TO_STAND):
        codes = [sport.call(7101, data=DAMP)]
        time.sleep(0.5)
        codes.append(sport.call(7101, data=mode))
        seen["up"].append([*codes, _wait_for_mode(sport, mode)])
    seen["start"] = sport.call(7101, data=START)
    seen["after"] = _wait_for_mode(sport, START)
    return seen


def _wait_for_mode(sport: Service, mode: int) -> int:
    """Wait until the robot is in this mode; return the mode that it is in."""
    until = time.monotonic() + PATIENCE_S
    while (now := int(sport.read(7001)["data"])) != mode and time.monotonic() < until:
        time.sleep(0.1)
    return now


class VoiceStates:
    """What the robot reports of its loudspeaker. It reports changes only, so this must be heard
    from the beginning: on a busy computer a new reader may be found after a sound has ended.
    """

    def __init__(self) -> None:
        self.seen: list[Any] = []
        kind = library("idl.std_msgs.msg.dds_").String_
        self._watch = Watch(AUDIO, kind, self._add)

    def _add(self, message: Any) -> None:
        self.seen.append(json.loads(message.data).get("play_state"))

    def wait_until_played(self) -> None:
        self._watch.wait(lambda _: 1 in self.seen and self.seen[-1] == 0)


def speak(states: VoiceStates) -> dict[str, Any]:
    """Do what the examples of the voice do; a sound is sent beside the parameter."""
    voice = Service(VOICE, 1001, 1003, 1004, 1005, 1006, 1010)
    played = []
    for _ in range(2):
        parameter = json.dumps({"app_name": "example", "stream_id": "1"})
        played.append(voice.send(1003, parameter, [0, 16] * SOUND_SAMPLES))
    # On a busy computer a sound may be over before its request is answered.
    states.wait_until_played()
    codes = [
        voice.call(1006, volume=85),
        voice.call(1001, index=0, text="hello", speaker_id=1),
        voice.call(1010, R=255, G=0, B=0),
        voice.call(1004, app_name="example"),
    ]
    return {"codes": codes, "volume": voice.read(1005), "played": played}


def main(interface: str, domain: int) -> None:
    library("core.channel").ChannelFactoryInitialize(domain, interface)
    voice_states = VoiceStates()
    say("arm_action", **arm_action())
    # Before the arms: while joint states fill its buffers, a busy client loses what is sent once.
    say("voice", **speak(voice_states))
    say("arm7", **arm7())
    say("loco", **loco())
    say("done")


if __name__ == "__main__":
    OUT = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    main(sys.argv[1], int(sys.argv[2]))
