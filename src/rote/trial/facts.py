"""Facts that rote assumes about robots and that were not verified on one, each with its grade.

A fact has the grade that its page in docs/protocol shows: a comment on the page, `fact: ID`, names
it, and a test compares both. The facts of the teaching frames come from the grades in
`rote.wire.teaching.fields`, from which their page is generated too. Each fact has a step that tests
it, or a reason why no trial can.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from rote.trial.steps import A1_WIRE, FRAMES_WIRES, SERVICE_WIRES
from rote.wire.a1 import formats as a1_formats
from rote.wire.teaching import fields as teaching_fields
from rote.wire.teaching.fields import FieldGrade, FrameDirection

DATACHANNEL, DDS, A1, FRAMES = "datachannel", "dds", "a1", "frames"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that rote assumes about robots."""

    id: str
    page: str
    """The page of docs/protocol that states the fact."""
    grade: str
    """The evidence for the fact, as the page states it."""
    says: str
    """The fact as a sentence."""
    wires: tuple[str, ...]
    step: str = ""
    """The step that tests it; empty if none does."""
    read: str = ""
    """Dotted path of its value in the measurements."""
    assumed: Any = None
    """The value with which the fact is true."""
    within: float | None = None
    """Tolerance within which a number agrees."""
    least: bool = False
    """Whether `assumed` is a minimum: every larger value agrees too."""
    why_not: str = ""
    """The reason why no step tests it."""
    only_used: bool = False
    """Whether the step relies on the fact without testing it: others might have worked too."""


class _FactsPage(NamedTuple):
    """Makes the facts that one page of docs/protocol states."""

    page: str
    wires: tuple[str, ...]
    prefix: str = ""
    """Prefix of the ids."""

    def tested(
        self, id_: str, grade: str, says: str, step: str, read: str, assumed: Any, **more: Any
    ) -> Fact:
        """Return a fact that a step tests; `more` are other fields of `Fact`."""
        return Fact(
            id=self.prefix + id_,
            page=self.page,
            grade=grade,
            says=says,
            wires=more.pop("wires", self.wires),
            step=step,
            read=read,
            assumed=assumed,
            **more,
        )

    def untested(self, id_: str, grade: str, says: str, why_not: str) -> Fact:
        """Return a fact that no step tests."""
        return Fact(
            id=self.prefix + id_,
            page=self.page,
            grade=grade,
            says=says,
            wires=self.wires,
            why_not=why_not,
        )


_ON_DATACHANNEL = _FactsPage(DATACHANNEL, ("webrtc",))
_ON_DDS = _FactsPage(DDS, ("dds",))
_ON_A1 = _FactsPage(A1, (A1_WIRE,), "a1.")
_STREAMS = "a trial does not stream: a wrong stream could move the robot forcefully"
_HANDS = "a trial does not move hands"
_LOCAL = "the fact concerns programs on one computer, and was measured there"
_LIBRARY = "the fact concerns Unitree's library on a computer, and was measured there"
_UNREAD = "no document states what a correct value would be"
_DESIGN = "the fact is a design choice of rote, not a statement about a robot"


# ---- by WebRTC ----------------------------------------------------------------------------------

# fmt: off
_WEBRTC_FACTS = (
    _ON_DATACHANNEL.tested(
        "discovery.question", "source", "the robot answers a search on UDP port 10131", "discover",
        "discovery.answers_everybody", True,
    ),
    _ON_DATACHANNEL.untested(
        "discovery.only-own-serial", "source",
        "firmware 1.5.1 and later answers only a search for its own serial",
        "a test would need the robot's serial, which a trial neither requests nor stores; "
        "discovery.question shows whether the robot answers a general search",
    ),
    _ON_DATACHANNEL.untested(
        "discovery.also-asker", "choice",
        "the simulated robot also replies to the port that the search came from", _DESIGN,
    ),
    *(
        _ON_DATACHANNEL.tested(
            f"signalling.{variant}", "source", firmware, "connect", f"signalling_is.{variant}", True
        )
        for variant, firmware in (
            ("legacy", "Go2 1.0.19 to 1.0.25: the client sends POST :8081/offer"),
            ("plain", "Go2 1.1.1 to 1.1.7: the notice is not encrypted"),
            ("static-key",
             "Go2 up to 1.1.14, G1 1.2.0 to 1.4: the notice is encrypted, with one key for all "
             "robots"),
            ("device-key",
             "Go2 from 1.1.15, G1 from 1.5.1, R1: the notice is encrypted with the robot's own "
             "key"),
        )
    ),
    _ON_DATACHANNEL.tested(
        "signalling.offer-lines", "source: the WebRTC stack that the robot is built on",
        "an offer with one media line, for the data channel, is enough", "connect", "connected",
        True,
    ),
    _ON_DATACHANNEL.untested(
        "channel.unacknowledged", "source",
        "the robot may never acknowledge the opening of the channel",
        "the WebRTC library does not pass on the acknowledgement; a connection works either way",
    ),
    _ON_DATACHANNEL.tested(
        "channel.validation", "source", "the client answers the challenge with an MD5 hash of it",
        "connect",
        "connected", True,
    ),
    _ON_DATACHANNEL.tested(
        "channel.heartbeat", "source", "the robot echoes heartbeats", "listen",
        "topics.heartbeat.hz",
        0.5, within=0.3, least=True,
    ),
    _ON_DATACHANNEL.untested(
        "channel.silent-client", "choice", "the robot drops a client that is silent for 10 s",
        "rote would have to stop sending while the robot may be moving",
    ),
    _ON_DATACHANNEL.tested(
        "arm.7106", "docs, claim",
        "the robot answers a request for a preset when the motion is over",
        "preset", "preset.answered_at_end", True, wires=SERVICE_WIRES,
    ),
    _ON_DATACHANNEL.tested(
        "arm.7111", "claim", "a recording can be paused and resumed", "pause",
        "teaching.pause_code", 0, wires=SERVICE_WIRES,
    ),
    _ON_DATACHANNEL.tested(
        "teaching.lapse", "claim", "teaching ends by itself after 10 s without a keep-alive",
        "lapse", "teaching.lapse_s", 10.0, within=2.0, wires=SERVICE_WIRES,
    ),
    _ON_DATACHANNEL.untested(
        "teaching.most",
        "contradicted: 180 s is only the limit of the app's counter; "
        "the app sends keep-alives beyond it",
        "teaching ends by itself after 180 s",
        "three minutes is too long for a person to hold soft arms",
    ),
    _ON_DATACHANNEL.tested(
        "teaching.overwrites", "claim", "teaching an existing name overwrites the action",
        "overwrite",
        "teaching.overwrites", True, wires=SERVICE_WIRES,
    ),
    _ON_DATACHANNEL.untested(
        "sport.500-not-reached", "seen on a robot: mode 500 on a G1 with 29 joints",
        "the robot may confirm a mode change and not reach the mode",
        "a trial does not change the mode, because the robot may fall",
    ),
)
# fmt: on


# ---- by DDS -------------------------------------------------------------------------------------


# fmt: off
_DDS_FACTS = (
    _ON_DDS.tested("dds.services", "docs", "services receive requests on rt/api/SERVICE/request",
        "services", "services.controller", "ai"),
    _ON_DDS.tested("dds.lowstate", "docs; 1052 Hz on one robot (claim)",
        "rt/lowstate is published at 500 Hz or more", "listen", "topics.rt/lowstate.hz",
        500.0, within=50.0, least=True),
    _ON_DDS.tested("dds.arm_sdk", "docs, claim", "the topic rt/arm_sdk exists", "listen",
        "bus_has.rt/arm_sdk", True),
    _ON_DDS.tested("dds.arm-state", "log, claim", "rt/arm/action/state is published at 10 Hz",
        "listen", "topics.rt/arm/action/state.hz", 10.0, within=1.5),
    _ON_DDS.tested("dds.sport-state", "docs", "rt/sportmodestate is published", "listen",
        "bus_has.rt/sportmodestate", True),
    _ON_DDS.tested("dds.battery", "claim for its fields", "rt/lf/bmsstate reports the battery",
        "listen", "bus_has.rt/lf/bmsstate", True),
    _ON_DDS.tested("dds.hand-states", "docs", "a hand publishes rt/dex3/left/state", "listen",
        "bus_has.rt/dex3/left/state", True),
    _ON_DDS.untested("dds.hand-commands", "docs", "a hand obeys commands on rt/dex3/left/cmd",
        _HANDS),
    _ON_DDS.untested("dds.scripted-hand", "choice",
        "rt/rote/hand moves the arms of a simulated robot",
        "the topic is rote's own; no real robot reads it"),
    _ON_DDS.untested("dds.crash", "measured",
        "a peer that declares octets as uint8 crashes CycloneDDS 0.10.2", _LOCAL),
    _ON_DDS.untested("dds.no-crash", "measured",
        "a peer that declares octets as byte does not crash CycloneDDS 0.10.2", _LOCAL),
    _ON_DDS.tested("dds.types", "docs", "requests and responses have the documented types",
        "services",
        "services.controller", "ai"),
    _ON_DDS.tested("dds.versions", "docs", "api 1 of each service returns its version",
        "services", "services.versions.arm", "1.0.0.14"),
    _ON_DDS.untested("dds.loco", "docs",
        "the service sport was called loco before ai_sport 8.2.0.0",
        "rote does not support the old name; the doctor reports such a robot"),
    _ON_DDS.tested("dds.motors", "docs", "there are 35 motors; motors 0 to 28 are joints", "listen",
        "topics.rt/lowstate.bytes", 2092),
    _ON_DDS.tested("dds.crc", "docs", "the checksum is CRC-32/MPEG-2 over the C struct", "listen",
        "joints_told", 29),
    _ON_DDS.untested("dds.no-crc", "docs", "a checksum of 0 means that there is none",
        "only a robot that omits the checksum can show this"),
    _ON_DDS.tested("dds.machine", "docs",
        "mode_machine 4 means 23 joints, 5 means 29, 6 means 29 with a locked waist", "listen",
        "known", True),
    _ON_DDS.untested("dds.arm_sdk-modes", "docs, claim",
        "rt/arm_sdk moves motors 12 to 28 in lock stand and the walking modes", _STREAMS),
    _ON_DDS.untested("dds.stream-balanced", "choice", "rote streams only while the robot balances",
        _DESIGN),
    _ON_DDS.untested("dds.gains", "docs", "stiffness 60 and damping 1.5 suit the arms", _STREAMS),
    _ON_DDS.untested("dds.hand-mode", "docs",
        "the mode of a hand motor contains its index and a timeout bit", _HANDS),
    _ON_DDS.untested("dds.hand-timeout", "choice",
        "rote always sets the timeout bit of hand motors",
        _DESIGN),
    _ON_DDS.untested(
        "dds.hand-gains", "Unitree's example, docs",
        "gains up to 1.5 N·m/rad and 0.1 N·m·s/rad suit the fingers", _HANDS,
    ),
    _ON_DDS.untested("dds.hand-declarations", "docs",
        "Unitree publishes two declarations of the hand types", _HANDS),
    _ON_DDS.untested("dds.hand-identity", "measured",
        "rote's hand types have the identity that CycloneDDS 0.10.2 computes", _LOCAL),
)
# fmt: on


# ---- an A1 and a Go1 ----------------------------------------------------------------------------


def _make_format_fact(frame: a1_formats.A1Format) -> Fact:
    """Return the fact that a frame of an A1 or Go1 has the assumed length."""
    size, kind = frame.layout.size, frame.kind.value
    dialects = " or ".join(dialect.value for dialect in frame.dialects)
    grade = "measured" if kind in ("LowCmd", "LowState") else "header, measured"
    section = "a1_frame_is" if kind.endswith("State") else "a1_command_is"
    return _ON_A1.tested(
        f"frame.{size}",
        grade,
        f"a {kind} of dialect {dialects} has {size} bytes",
        "a1-listen",
        f"{section}.{size}",
        True,
    )


# fmt: off
_A1_FACTS = (
    _ON_A1.tested("answers", "stated by the document; the address: report",
        "the robot sends states to the address that a command came from", "a1-listen",
        "a1_states_received", True),
    _ON_A1.untested(
        "safety", "contradicted, measured",
        "Unitree's class Safety contains limits and three functions", _LIBRARY,
    ),
    _ON_A1.untested("buffers", "stated by the document; measured",
        "Unitree's class UDP has a send buffer and a receive buffer", _LIBRARY),
    _ON_A1.untested("loop", "stated by the document; measured",
        "Unitree's LoopFunc drops late calls",
        _LIBRARY),
    _ON_A1.tested("crc", "contradicted, measured", "crc is a CRC-32 over whole words", "a1-listen",
        "a1.damaged", 0),
    _ON_A1.tested("level-flag", "contradicted, header",
        "levelFlag selects the walking controller or the motors",
        "a1-listen", "a1_flag_fits", True),
    _ON_A1.tested("serial", "header", "the serial number SN is 0", "a1-listen", "a1.serial_told",
        False),
    _ON_A1.tested("structures", "contradicted, measured",
        "LowCmd and LowState have fewer bytes on the wire than in the header", "a1-listen",
        "a1_length_known", True),
    _ON_A1.tested("fields", "header", "all fields have the documented order and type", "a1-listen",
        "a1.quaternion_norm", 1.0, within=0.02),
    _ON_A1.tested("modes", "header", "mode 1 is a forced stand", "a1-stand", "a1.stand_mode", 1),
    _ON_A1.tested("speeds", "header; speeds: report; height: our choice",
        "a command for 0.2 m/s makes the robot walk at 0.2 m/s", "a1-walk", "a1.walk_speed_m_s",
        0.2,
        within=0.08),
    _ON_A1.untested("foot-raise", "header", "footRaiseHeight is in metres from v3.3 on",
        "not every state contains the height of a foot, and a person cannot measure it safely"),
    _ON_A1.tested("euler", "stated by the document; the spans: our choice",
        "yaw, pitch and roll are commanded in radians", "a1-pose", "a1.turned_rad.roll",
        0.2, within=0.08),
    _ON_A1.untested("led", "header", "led has three bytes for each leg", _UNREAD),
    _ON_A1.tested("tick", "header", "tick counts microseconds", "a1-listen", "a1.tick_per_s", 1e6,
        within=1e5),
    _ON_A1.untested("foot-force", "header", "footForce has no published unit", _UNREAD),
    _ON_A1.tested("position", "stated by the document",
        "forwardPosition changes when the robot walks", "a1-walk",
        "a1.walk_moved_m", 0.3, within=0.2),
    _ON_A1.untested("remote", "header",
        "wirelessRemote contains the buttons and sticks of the remote",
        "a person would have to press every button of the remote"),
    _ON_A1.tested("temperature", "stated by the document; the limit: our choice",
        "a motor at rest is cooler than 80 °C", "a1-listen", "a1_cool", True),
    _ON_A1.tested("motor-law", "stated by the document; header",
        "a motor applies the torque tau + Kp (q - measured) + Kd (dq - measured)", "a1-joint",
        "a1_joint_share", 1.0, within=0.4),
    _ON_A1.tested("motors", "header", "motor 0 is the hip of the right front leg", "a1-joint",
        "a1_joint_share", 1.0, within=0.4),
    _ON_A1.tested("high-motors", "header", "HighState of v3.3.3 and later contains the motors",
        "a1-listen", "a1_motors_fit", True),
    *map(_make_format_fact, a1_formats.FORMATS),
    _ON_A1.tested("ports", "Header and the library's examples; measured.",
        "the motors use port 8007, the walking controller 8082", "a1-connect", "connected",
        True),
    _ON_A1.tested("packing", "Measured.",
        "each motor has fewer bytes on the wire than in the header",
        "a1-listen", "a1_length_known", True),
    _ON_A1.tested("go1-checksum", "Measured.", "the checksum in the states of a Go1 is encrypted",
        "a1-listen", "a1.damaged", 0),
)
# fmt: on


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
"""The step that uses a frame layout."""
_MEASUREMENT_OF_STEP = {
    "connect": "connected",
    "listen": "frames_received",
    "list": "frames_listed",
    "teach": "teaching.listed",
    "lapse": "frames_lapsed",
    "play": "playing.completed",
}
"""The measurement which shows that a step worked."""
_NOT_SENT = "no step sends these fields, and no factory robot uses these frames"


def _list_frame_facts() -> Iterator[Fact]:
    """Yield one fact for each field of the header and of every frame layout."""
    for field in (*teaching_fields.HEADER, teaching_fields.CRC):
        yield _make_field_fact("header", field.name, field.grade, field.meaning, "connect")
    for layout in teaching_fields.LAYOUTS:
        step = _STEP_OF_LAYOUT.get(layout.key, "")
        if not step and layout.direction is FrameDirection.REPORT:
            step = "listen"
        for field in layout.fields:
            yield _make_field_fact(layout.key, field.name, field.grade, field.meaning, step)


def _make_field_fact(layout: str, name: str, grade: FieldGrade, meaning: str, step: str) -> Fact:
    """Return the fact that a field of a teaching frame has the assumed meaning."""
    return Fact(
        id=f"frames.{layout}.{name}",
        page=FRAMES,
        grade=grade.value,
        says=f"{name}: {meaning}",
        wires=FRAMES_WIRES,
        step=step,
        read=_MEASUREMENT_OF_STEP.get(step, ""),
        assumed=True if step else None,
        why_not="" if step else _NOT_SENT,
        only_used=bool(step),
    )


def list_facts() -> tuple[Fact, ...]:
    """Return all facts that no log confirms; of several with one id, only the first."""
    by_id: dict[str, Fact] = {}
    for fact in (
        *_WEBRTC_FACTS,
        *_DDS_FACTS,
        *_A1_FACTS,
        *_list_frame_facts(),
    ):
        if fact.grade != FieldGrade.LOG.value:
            by_id.setdefault(fact.id, fact)
    return tuple(by_id.values())
