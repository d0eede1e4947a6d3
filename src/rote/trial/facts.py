"""What rote assumes about robots but has not been verified on one: each fact with its grade.

A fact has the grade that its page in docs/protocol shows: a comment on the page, `fact: ID`, names
it, and a test compares both. The facts of the teaching frames come from the grades in
`rote.wire.teaching.fields`, from which their page is generated too. Each fact has a step that tests
it, or a reason why no trial can.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rote.trial.steps import A1_WIRE, BY_ID, FRAMES_WIRES, SERVICE_WIRES
from rote.wire.a1 import formats as a1_formats
from rote.wire.teaching import fields as teaching_fields
from rote.wire.teaching.fields import FieldGrade, FrameDirection

DATACHANNEL, DDS, A1, FRAMES = "datachannel", "dds", "a1", "frames"
_WEBRTC, _BUS, _QUADRUPED = ("webrtc",), ("dds",), (A1_WIRE,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that rote assumes."""

    id: str
    page: str
    """The page of docs/protocol that states it."""
    grade: str
    """How well it is supported, as the page puts it."""
    says: str
    wires: tuple[str, ...]
    step: str = ""
    """The step that tests it; empty if none does."""
    read: str = ""
    """Dotted path of its value in the measurements."""
    assumed: Any = None
    within: float | None = None
    """Tolerance within which a number agrees."""
    least: bool = False
    """Whether a larger value agrees too."""
    why_not: str = ""
    """Why no step tests it."""
    only_used: bool = False
    """Whether the step relies on it without testing it: other values might have worked too."""


# ---- by WebRTC ----------------------------------------------------------------------------------


def _webrtc_facts() -> Iterator[Fact]:
    def tested(
        id_: str, grade: str, says: str, step: str, read: str, assumed: Any, **more: Any
    ) -> Fact:
        wires = more.pop("wires", _WEBRTC)
        return Fact(id=id_, page=DATACHANNEL, grade=grade, says=says, wires=wires, step=step,
                    read=read, assumed=assumed, **more)  # fmt: skip

    def untested(id_: str, grade: str, says: str, why_not: str) -> Fact:
        return Fact(
            id=id_, page=DATACHANNEL, grade=grade, says=says, wires=_WEBRTC, why_not=why_not
        )

    yield tested(
        "discovery.question", "source", "a search on UDP 10131 is answered", "discover",
        "discovery.answers_everybody", True,
    )  # fmt: skip
    yield untested(
        "discovery.only-own-serial", "source", "firmware from 1.5.1 answers only its own serial",
        "it needs the robot's serial, which a trial neither asks for nor keeps; that a general "
        "search stays unanswered is noted (discovery.question)",
    )  # fmt: skip
    yield untested(
        "discovery.also-asker", "choice", "the simulated robot replies to the asker's port too",
        "it is a choice for the simulated robot, not a statement about a real one",
    )  # fmt: skip
    for variant, firmware in (
        ("legacy", "Go2 1.0.19 to 1.0.25: POST :8081/offer"),
        ("plain", "Go2 1.1.1 to 1.1.7: the notice is plain"),
        ("static-key", "Go2 to 1.1.14, G1 1.2.0 to 1.4: one key for all robots"),
        ("device-key", "Go2 from 1.1.15, G1 from 1.5.1, R1: the robot's own key"),
    ):
        yield tested(
            f"signalling.{variant}", "source", firmware, "connect", f"signalling_is.{variant}", True
        )
    yield tested(
        "signalling.offer-lines", "source: the stack it is built on",
        "an offer with one line, for the data channel, is enough", "connect", "connected", True,
    )  # fmt: skip
    yield untested(
        "channel.unacknowledged", "source", "the robot may never acknowledge the channel's opening",
        "the acknowledgement is used up by the WebRTC library; a connection works either way",
    )  # fmt: skip
    yield tested(
        "channel.validation", "source", "the challenge is answered with an MD5 of it", "connect",
        "connected", True,
    )  # fmt: skip
    yield tested(
        "channel.heartbeat", "source", "heartbeats are echoed", "listen", "topics.heartbeat.hz",
        0.5, within=0.3, least=True,
    )  # fmt: skip
    yield untested(
        "channel.silent-client", "choice", "a silent client is dropped after 10 s",
        "rote would have to fall silent with a robot that may be moving; it says goodbye instead",
    )  # fmt: skip
    yield tested(
        "arm.7106", "docs, claim", "a preset is answered when its motion is over", "preset",
        "preset.answered_at_end", True, wires=SERVICE_WIRES,
    )  # fmt: skip
    yield tested(
        "arm.7111", "claim", "a recording can be paused, and goes on", "pause",
        "teaching.pause_code", 0, wires=SERVICE_WIRES,
    )  # fmt: skip
    yield tested(
        "teaching.lapse", "claim", "teaching ends by itself after 10 s without a keep-alive",
        "lapse", "teaching.lapse_s", 10.0, within=2.0, wires=SERVICE_WIRES,
    )  # fmt: skip
    yield untested(
        "teaching.most", "claim", "teaching ends by itself after 180 s",
        "three minutes of soft arms are too long for a person's hands",
    )  # fmt: skip
    yield tested(
        "teaching.overwrites", "claim", "a name that exists is overwritten", "overwrite",
        "teaching.overwrites", True, wires=SERVICE_WIRES,
    )  # fmt: skip
    yield untested(
        "sport.500-not-reached", "claim: 500 on a robot of 29 joints",
        "a mode may be confirmed and not reached",
        "a trial changes no mode: a robot that changes it may fall",
    )  # fmt: skip


# ---- by DDS -------------------------------------------------------------------------------------


def _dds_facts() -> Iterator[Fact]:
    def tested(
        id_: str, grade: str, says: str, step: str, read: str, assumed: Any, **more: Any
    ) -> Fact:
        return Fact(id=id_, page=DDS, grade=grade, says=says, wires=_BUS, step=step, read=read,
                    assumed=assumed, **more)  # fmt: skip

    def untested(id_: str, grade: str, says: str, why_not: str) -> Fact:
        return Fact(id=id_, page=DDS, grade=grade, says=says, wires=_BUS, why_not=why_not)

    streams = "a trial streams nothing: a wrong stream moves a robot by force"
    hands = "a trial does not move hands; their states are counted if they come"
    local = "it is about programs on this computer, and was measured there"
    yield tested("dds.services", "docs", "services are asked on rt/api/<service>/request",
                 "services", "services.controller", "ai")  # fmt: skip
    yield tested("dds.lowstate", "docs; one robot did 1052 Hz (claim)",
                 "rt/lowstate comes 500 times a second or more", "listen", "topics.rt/lowstate.hz",
                 500.0, within=50.0, least=True)  # fmt: skip
    yield tested("dds.arm_sdk", "docs, claim", "there is rt/arm_sdk", "listen",
                 "bus_has.rt/arm_sdk", True)  # fmt: skip
    yield tested("dds.arm-state", "log, claim", "rt/arm/action/state comes ten times a second",
                 "listen", "topics.rt/arm/action/state.hz", 10.0, within=1.5)  # fmt: skip
    yield tested("dds.sport-state", "docs", "rt/sportmodestate is published", "listen",
                 "bus_has.rt/sportmodestate", True)  # fmt: skip
    yield tested("dds.battery", "claim for its fields", "rt/lf/bmsstate tells the battery",
                 "listen", "bus_has.rt/lf/bmsstate", True)  # fmt: skip
    yield tested("dds.hand-states", "docs", "a hand publishes rt/dex3/left/state", "listen",
                 "bus_has.rt/dex3/left/state", True)  # fmt: skip
    yield untested("dds.hand-commands", "docs", "a hand obeys rt/dex3/left/cmd", hands)
    yield untested("dds.scripted-hand", "choice", "rt/rote/hand moves a simulated robot",
                   "it is rote's own, and no real robot listens there")  # fmt: skip
    yield untested("dds.crash", "measured", "octets as uint8 crash a 0.10.2 process", local)
    yield untested("dds.no-crash", "measured", "octets as byte do not", local)
    yield tested("dds.types", "docs", "requests and responses have these types", "services",
                 "services.controller", "ai")  # fmt: skip
    yield tested("dds.versions", "docs", "api 1 tells the version of each service", "services",
                 "services.versions.arm", "1.0.0.14")  # fmt: skip
    yield untested("dds.loco", "docs", "sport was called loco before ai_sport 8.2.0.0",
                   "rote cannot ask a robot with the old name; the doctor reports it")  # fmt: skip
    yield tested("dds.motors", "docs", "35 motors, of which 0 to 28 are joints", "listen",
                 "topics.rt/lowstate.bytes", 2092)  # fmt: skip
    yield tested("dds.crc", "docs", "the CRC is CRC-32/MPEG-2 over the C struct", "listen",
                 "joints_told", 29)  # fmt: skip
    yield untested("dds.no-crc", "docs", "a CRC of 0 means none",
                   "only a robot that leaves it out can show it")  # fmt: skip
    yield tested("dds.machine", "docs", "mode_machine 4 is 23 joints, 5 is 29, 6 a locked waist",
                 "listen", "known", True)  # fmt: skip
    yield untested("dds.arm_sdk-modes", "docs, claim",
                   "rt/arm_sdk moves motors 12 to 28 in some modes", streams)  # fmt: skip
    yield untested("dds.stream-balanced", "choice", "rote streams only while the robot balances",
                   "it is a choice of rote, not a statement about a robot")  # fmt: skip
    yield untested("dds.gains", "docs", "stiffness 60 and damping 1.5 suit the arms", streams)
    yield untested("dds.hand-mode", "docs", "a hand's motor mode has the place and a timeout bit",
                   hands)  # fmt: skip
    yield untested("dds.hand-timeout", "choice", "rote always sets the timeout bit",
                   "it is a choice of rote, not a statement about a robot")  # fmt: skip
    yield untested(
        "dds.hand-gains", "Unitree's example, docs", "these gains suit the fingers", hands
    )
    yield untested("dds.hand-declarations", "docs",
                   "there are two declarations of the hands' types", hands)  # fmt: skip
    yield untested("dds.hand-identity", "measured", "the newer declaration's identity is 0.10.2's",
                   local)  # fmt: skip


# ---- an A1 and a Go1 ----------------------------------------------------------------------------


def _a1_facts() -> Iterator[Fact]:
    def tested(
        id_: str, grade: str, says: str, step: str, read: str, assumed: Any, **more: Any
    ) -> Fact:
        return Fact(id=f"a1.{id_}", page=A1, grade=grade, says=says, wires=_QUADRUPED, step=step,
                    read=read, assumed=assumed, **more)  # fmt: skip

    def untested(id_: str, grade: str, says: str, why_not: str) -> Fact:
        return Fact(
            id=f"a1.{id_}", page=A1, grade=grade, says=says, wires=_QUADRUPED, why_not=why_not
        )

    library = "it is about Unitree's library on a computer, and was measured there"
    unread = "no document says what a right value would be"
    yield tested("answers", "stated by the document; the address: report",
                 "the robot answers to the address that a command came from", "a1-listen",
                 "a1_heard", True)  # fmt: skip
    yield untested(
        "safety", "contradicted, measured", "Safety holds limits and three functions", library
    )
    yield untested("buffers", "stated by the document; measured", "UDP has two buffers", library)
    yield untested("loop", "stated by the document; measured", "LoopFunc drops late calls", library)
    yield tested("crc", "contradicted, measured", "crc is a CRC-32 over whole words", "a1-listen",
                 "a1.damaged", 0)  # fmt: skip
    yield tested("level-flag", "contradicted, header", "levelFlag says whom a frame is for",
                 "a1-listen", "a1_flag_fits", True)  # fmt: skip
    yield tested("serial", "header", "SN is left at 0", "a1-listen", "a1.serial_told", False)
    yield tested("structures", "contradicted, measured", "LowCmd and LowState are packed smaller",
                 "a1-listen", "a1_length_known", True)  # fmt: skip
    yield tested("fields", "header", "the order and types of all fields", "a1-listen",
                 "a1.quaternion_norm", 1.0, within=0.02)  # fmt: skip
    yield tested("modes", "header", "mode 1 is a forced stand", "a1-stand", "a1.stand_mode", 1)
    yield tested("speeds", "header; speeds: report; height: our choice",
                 "a speed of 0.2 m/s is asked for as such", "a1-walk", "a1.walk_speed_m_s", 0.2,
                 within=0.08)  # fmt: skip
    yield untested("foot-raise", "header", "footRaiseHeight is in metres from v3.3 on",
                   "a foot's height is not in every state, and cannot be seen safely")  # fmt: skip
    yield tested("euler", "stated by the document; the spans: our choice",
                 "yaw, pitch and roll are asked for in radians", "a1-pose", "a1.turned_rad.roll",
                 0.2, within=0.08)  # fmt: skip
    yield untested("led", "header", "led is three bytes for each leg", unread)
    yield tested("tick", "header", "tick counts microseconds", "a1-listen", "a1.tick_per_s", 1e6,
                 within=1e5)  # fmt: skip
    yield untested("foot-force", "header", "footForce has no published unit", unread)
    yield tested("position", "stated by the document", "forwardPosition follows a step", "a1-walk",
                 "a1.walk_moved_m", 0.3, within=0.2)  # fmt: skip
    yield untested("remote", "header", "wirelessRemote holds buttons and sticks",
                   "a person would have to press every button of the remote")  # fmt: skip
    yield tested("temperature", "stated by the document; the limit: our choice",
                 "a motor at rest is far below 80 °C", "a1-listen", "a1_cool", True)  # fmt: skip
    yield tested("motor-law", "stated by the document; header",
                 "a motor gives tau + Kp (q - measured) + Kd (dq - measured)", "a1-joint",
                 "a1_joint_share", 1.0, within=0.4)  # fmt: skip
    yield tested("motors", "header", "motor 0 is the right front hip", "a1-joint", "a1_joint_share",
                 1.0, within=0.4)  # fmt: skip
    yield tested("high-motors", "header", "HighState of v3.3.3 and later has the motors",
                 "a1-listen",
                 "a1_motors_fit", True)  # fmt: skip
    for each in a1_formats.FORMATS:
        size, kind = each.layout.size, each.kind.value
        grade = "measured" if kind in ("LowCmd", "LowState") else "header, measured"
        if kind.endswith("State"):
            yield tested(f"frame.{size}", grade, f"a {kind} has {size} bytes", "a1-listen",
                         f"a1_frame_is.{size}", True)  # fmt: skip
        else:
            yield tested(f"frame.{size}", grade, f"a {kind} has {size} bytes", "a1-listen",
                         f"a1_command_is.{size}", True)  # fmt: skip
    yield tested("ports", "Header and the library's examples; measured.",
                 "8007 for the motors, 8082 for the walking controller", "a1-connect", "connected",
                 True)  # fmt: skip
    yield tested("packing", "Measured.", "each motor is packed smaller than its structure",
                 "a1-listen", "a1_length_known", True)  # fmt: skip
    yield tested("go1-checksum", "Measured.", "a Go1 seals its states with an encrypted CRC",
                 "a1-listen", "a1.damaged", 0)  # fmt: skip


# ---- the teaching frames ------------------------------------------------------------------------

_STEP_OF_LAYOUT = {
    "control-mode": "connect",
    "parameter-sync": "connect",
    "subscribe": "connect",
    "ready": "connect",
    "enter-teaching": "teach",
    "keep-teaching": "lapse",
    "exit-teaching": "teach",
    "hand": "teach",
    "record": "teach",
    "list": "list",
    "list-reply": "list",
    "save": "teach",
    "play": "play",
    "status": "connect",
    "state": "listen",
    "state-all": "listen",
    "heartbeat": "listen",
}
_BY_STEP = {
    "connect": "connected",
    "listen": "frames_heard",
    "list": "frames_listed",
    "teach": "teaching.listed",
    "lapse": "frames_lapsed",
    "play": "playing.completed",
}
_NOT_SENT = "no step sends it, and no factory robot speaks these frames"


def _frame_facts() -> Iterator[Fact]:
    """One fact for each field that is below "seen in a log", and for the header's."""
    for one in (*teaching_fields.HEADER, teaching_fields.CRC):
        yield _field_fact("header", one.name, one.grade, one.meaning, "connect")
    for layout in teaching_fields.LAYOUTS:
        step = _STEP_OF_LAYOUT.get(layout.key, "")
        if not step and layout.direction is FrameDirection.REPORT:
            step = "listen"
        for one in layout.fields:
            yield _field_fact(layout.key, one.name, one.grade, one.meaning, step)


def _field_fact(layout: str, name: str, grade: FieldGrade, meaning: str, step: str) -> Fact:
    return Fact(
        id=f"frames.{layout}.{name}",
        page=FRAMES,
        grade=grade.value,
        says=f"{name}: {meaning}",
        wires=FRAMES_WIRES,
        step=step,
        read=_BY_STEP.get(step, ""),
        assumed=True if step else None,
        why_not="" if step else _NOT_SENT,
        only_used=bool(step),
    )


def facts() -> tuple[Fact, ...]:
    """Return all facts below "seen"; a field that occurs twice in a frame counts once."""
    by_id: dict[str, Fact] = {}
    for fact in (*_webrtc_facts(), *_dds_facts(), *_a1_facts(), *_frame_facts()):
        if fact.grade != FieldGrade.LOG.value:
            by_id.setdefault(fact.id, fact)
    return tuple(by_id.values())


def definition_error(fact: Fact) -> str:
    """Return what is wrong with a fact's step, reason or wires; empty if nothing is."""
    if fact.step and fact.step not in BY_ID:
        return f"there is no step {fact.step}"
    if not fact.step and not fact.why_not:
        return "it has neither a step nor a reason why it cannot be tested"
    if fact.step and not fact.read:
        return "it does not state where the result is"
    if fact.step and not set(fact.wires) & set(BY_ID[fact.step].wires):
        return f"its wires do not have the step {fact.step}"
    return ""
