"""The steps for a robot that stores actions: a G1 and its relatives.

Limbs get soft only inside `robot.teach`, which makes them hold however it ends; the one exception,
the lapse step, ends the teaching itself in every case.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np

from rote import messages as m
from rote.errors import DecodeError, NotBegunError, RefusedError, RoteError
from rote.messages import Code, Phase
from rote.platform.loop import to_the_end
from rote.robot.api_values import TaughtAction
from rote.transport.link import Message, import_carrier, split_url
from rote.transport.services.client import ServicesClient
from rote.transport.udp.client import TeachingClient
from rote.trial.context import OWN_NAME, StepImpossibleError, TrialContext, rounded
from rote.wire.dds import lowlevel as dds_lowlevel
from rote.wire.services import rpc
from rote.wire.services.json_shape import shape_of
from rote.wire.services.list_format import list_format
from rote.wire.services.lowstate import BMS_TOPIC, LOWSTATE_TOPIC, SPORT_TOPIC
from rote.wire.teaching import codec as teaching

LISTEN_S, TEACH_S, AGAIN_S, PAUSED_S = 4.0, 2.0, 3.5, 2.0
LAPSE_LIMIT_S = 30.0
HOLD_S = 5.0
"""Timeout for the robot to report that its arms hold after a teaching."""
PAUSE, LAPSE, MISSING = f"{OWN_NAME}-pause", f"{OWN_NAME}-lapse", f"{OWN_NAME}-none"
EXTRA_TOPICS = ("rt/multiplestate", "rt/servicestate", "rt/odommodestate", "rt/lf/secondary_imu")
"""Topics that other clients subscribe to and rote does not need."""
NAMES = {
    "space": "rote trial",
    "foreign": "rote-试-é",
    "31 bytes": "rote-trial-" + "a" * 20,
    "64 bytes": "rote-trial-" + "b" * 53,
    "120 bytes": "rote-trial-" + "c" * 109,
}
PRESETS = (26, 27)
_LIST = f"{rpc.ARM}/{int(rpc.ArmApi.LIST_ACTIONS)}"
_TEACH = f"{rpc.ARM}/{int(rpc.ArmApi.TEACH)}"
_PLAY = f"{rpc.ARM}/{int(rpc.ArmApi.PLAY_TAUGHT)}"
_PAUSE = f"{rpc.ARM}/{int(rpc.ArmApi.PAUSE_TEACHING)}"
_DELETE = f"{rpc.ARM}/{int(rpc.ArmApi.DELETE_TAUGHT)}"
_RENAME = f"{rpc.ARM}/{int(rpc.ArmApi.RENAME_TAUGHT)}"
_STOP = f"{rpc.ARM}/{int(rpc.ArmApi.STOP_TAUGHT)}"
_FRAME_LIST, _FRAME_ENTER, _FRAME_EXIT, _FRAME_PLAY = "0x1a", "0x0d", "0x0e", "0x41"


def require_services(context: TrialContext) -> ServicesClient:
    """Return the services client; raise `StepImpossibleError` if the wire has none."""
    client = context.tap.client
    if not isinstance(client, ServicesClient):
        raise StepImpossibleError("the teaching frames have no services")
    return client


# ---- look ---------------------------------------------------------------------------------------


async def discover(context: TrialContext) -> None:
    """Search the network, and note whether this robot answers a general search."""
    from rote.transport import discovery  # noqa: PLC0415 - brings ifaddr

    parts = split_url(context.url)
    found = [one async for one in discovery.discover(seconds=2.0)]
    own = [one for one in found if parts.hostname == one.address or parts.netloc == one.serial]
    context.add_measured("discovery", answers_everybody=bool(own))


async def connect(context: TrialContext) -> None:
    """Record the stages of connecting."""
    stages = context.tap.stages
    spans = [
        {"stage": one.name, "seconds": round(then.at_s - one.at_s, 4)}
        for one, then in pairwise(stages)
    ]
    total_s = stages[-1].at_s - stages[0].at_s if stages else 0.0
    context.add_measured("connect", stages=spans, total_s=round(total_s, 4))
    build = context.robot.build
    context.measured |= {
        "signalling": context.tap.signalling or None,
        "message_bytes": context.tap.most_bytes,
        "family": build.family,
        "build": build.name,
        "known": build.known,
        "joints": len(build.joints),
        "abilities": sorted(context.robot.abilities),
    }


async def listen(context: TrialContext) -> None:
    """Count the topics, and learn the shapes of their messages."""
    unsubscribers = [
        context.robot.on_topic(topic, lambda _: None)
        for topic in (EXTRA_TOPICS if "topics" in context.robot.abilities else ())
    ]
    from_s = context.now_s
    bus: dict[str, Any] = {}
    if context.wire == "dds":
        bus = await _listen_on_dds(context)
    else:
        await asyncio.sleep(LISTEN_S)
    for each in unsubscribers:
        each()
    topics = context.recorder.rates(from_s, context.now_s)
    for topic, rate in bus.get("topics", {}).items():
        topics[topic] = rate
    context.measured["topics"] = {
        topic: rate for topic, rate in sorted(topics.items()) if not topic.startswith("our ")
    }
    if bus:
        context.add_measured("bus", seen=bus["seen"])
    state = context.robot.state
    if state is not None:
        context.measured["mode"] = state.mode
        context.measured["joints_told"] = len(state.joints_rad)
    _learn_shapes(context)


def _learn_shapes(context: TrialContext) -> None:
    recorder = context.recorder
    client = context.tap.client
    shapes = context.measured.setdefault("shapes", {})
    for name, topic in (
        ("lowstate", LOWSTATE_TOPIC),
        ("arm_state", rpc.ARM_STATE_TOPIC),
        ("sport", SPORT_TOPIC),
        ("battery", BMS_TOPIC),
    ):
        shape = recorder.shape(topic)
        if shape is not None:
            shapes[name] = shape
    motors = shapes.get("lowstate", {}).get("fields", {}).get("motor_state")
    if motors is not None:
        context.measured["slots"] = motors.get("count")
    if isinstance(client, ServicesClient):
        context.measured["mode_machine"] = client.identity.machine
        context.measured["clockless"] = client.clockless
        context.measured["missing_joints"] = len(client.missing)
    elif isinstance(client, TeachingClient):
        context.measured["clockless"] = client.clockless


async def _listen_on_dds(context: TrialContext) -> dict[str, Any]:
    """Listen on DDS with a separate reader: the robot's client reads only some of the states."""
    from rote.transport.dds import types  # noqa: PLC0415 - needs the carrier's library

    carrier = import_carrier(context.url)
    bus = carrier.Bus(carrier.read_url(split_url(context.url)))
    counts: dict[str, list[int]] = {dds_lowlevel.LOWSTATE_TOPIC: []}
    try:
        bus.reader(
            dds_lowlevel.LOWSTATE_TOPIC,
            types.LOWSTATE,
            lambda data: counts[dds_lowlevel.LOWSTATE_TOPIC].append(len(data)),
            depth=256,
            reliable=False,
        )
        await asyncio.sleep(1.0)  # until the reader is found
        for sizes in counts.values():
            sizes.clear()
        await asyncio.sleep(LISTEN_S - 1.0)
        written, read = bus.discovered_topics()
    finally:
        bus.close()
    topics = {
        topic: {"hz": round(len(sizes) / (LISTEN_S - 1.0), 2), "bytes": sizes[0]}
        for topic, sizes in counts.items()
        if sizes
    }
    return {"topics": topics, "seen": sorted(name for name in written | read if "rote" not in name)}


async def services(context: TrialContext) -> None:
    """Ask for versions, the mode and the controller."""
    if not context.has_services:
        mode = await context.robot.modes.read()
        context.measured["mode"] = mode.id
        raise StepImpossibleError("the teaching frames have no services; the mode was read")
    client = require_services(context)
    versions: dict[str, str | None] = {}
    for name in (rpc.ARM, rpc.SPORT, rpc.MOTION_SWITCHER, rpc.ROBOT_STATE, rpc.VOICE):
        try:
            versions[name] = (await client.call(rpc.Call(name, 1), read=True)).text
        except RefusedError as refused:
            versions[name] = f"refused with {refused.code}"
        except RoteError:
            versions[name] = None
    controller: str | None = None
    with suppress(RoteError):
        controller = await context.robot.controller()
    context.add_measured("services", versions=versions, controller=controller)
    code = await context.refusal_code(client.call(rpc.GET_FSM, read=True))
    context.add_refusal(f"{rpc.SPORT}/{int(rpc.SportApi.GET_FSM)}", "asked for the mode", 0, code)
    if context.recorder.modes:
        texts = [_parse_json(text) for text in context.recorder.modes]
        context.measured["shapes"] = context.measured.get("shapes", {})
        context.measured["shapes"]["mode"] = shape_of(texts)
        context.measured["mode_said"] = texts[-1]


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text.strip("\ufeff\0"), strict=False)
    except ValueError:
        return text


async def list_actions(context: TrialContext) -> None:
    """Ask for the list, and learn its format."""
    code: int | None = 0
    for _ in range(3):
        code = await context.refusal_code(context.robot.actions())
    context.add_refusal(
        _LIST if context.has_services else _FRAME_LIST, "asked for the list", 0, code
    )
    if code:
        raise StepImpossibleError(f"the list is refused with {code}")
    actions = await context.robot.actions()
    _learn_list_format(context)
    context.add_measured(
        "list", presets=len(actions.presets), taught=len(actions.taught), notes=_list_notes(context)
    )


def _learn_list_format(context: TrialContext) -> None:
    if context.recorder.lists:
        context.add_measured(
            "list", format=list_format([_parse_json(text) for text in context.recorder.lists])
        )


def _list_notes(context: TrialContext) -> list[str]:
    """Return the parts of the list that rote could not read, without names."""
    if not context.recorder.lists:
        return []
    with suppress(DecodeError):
        decoded = rpc.decode_actions(context.recorder.lists[-1])
        return sorted({note.split("'")[0].strip() for note in decoded.notes})
    return ["not a list"]


async def wrong_mode(context: TrialContext) -> None:
    """Ask to teach in a mode without balance, if the robot is in one."""
    mode = await context.robot.modes.read()
    if not mode.known or mode.balanced:
        raise StepImpossibleError(
            "the robot stands balanced; damp a hanging robot first to have this step"
        )
    name = f"{OWN_NAME}-mode"
    code = await context.refusal_code(_teach_briefly(context, name))
    context.add_refusal(_TEACH, "taught without balance", int(Code.WRONG_STATE), code)
    if code == 0:
        context.own_actions.add(name)
        context.saved_actions.add(name)


async def _teach_briefly(context: TrialContext, name: str) -> None:
    async with context.robot.teach(name, force=True):
        await asyncio.sleep(0.2)


# ---- hold ---------------------------------------------------------------------------------------


async def teach(context: TrialContext) -> None:
    """Teach once, and measure what the robot does before, meanwhile and afterwards."""
    from_s = context.now_s
    await _teach_action(context, OWN_NAME, TEACH_S)
    await context.wait_until_idle()
    await _measure_teaching(context, from_s, TEACH_S)


async def _teach_action(context: TrialContext, name: str, seconds: float) -> None:
    robot = context.robot
    context.own_actions.add(name)
    async with robot.teach(name, overwrite="overwrite" in robot.abilities, force=True):
        context.note("the arms are soft")
        if "hand" in robot.abilities:
            await robot.move_by_hand("wave", seconds)
        await asyncio.sleep(seconds)
    context.saved_actions.add(name)
    if (
        await context.wait_for_state(lambda state: state.phase_told and not state.arms_soft, HOLD_S)
        is None
    ):
        context.note("the robot does not report that its arms hold: look before you let go")
    else:
        context.note("the arms hold again")


async def _measure_teaching(context: TrialContext, from_s: float, taught_s: float) -> None:
    spans = context.activity_spans(from_s)
    enter = context.sent_at(_TEACH if context.has_services else _FRAME_ENTER, from_s)
    leave = context.last_sent_at(_TEACH if context.has_services else _FRAME_EXIT, from_s)
    soft = [span for span in spans if span[0] in ("recording", "soft")]
    values: dict[str, Any] = {"taught_s": taught_s}
    if soft and enter is not None and leave is not None:
        values["starts_after_s"] = rounded(soft[0][1] - enter)
        values["lingers_s"] = rounded(soft[-1][2] - leave)
        after = [span for span in spans if span[1] >= soft[-1][2] - 1e-9]
        returns = [end - begin for word, begin, end in after if word == "return"]
        values["release_s"] = rounded(sum(returns)) if returns else None
    times = [
        at_s
        for at_s, state in context.recorder.states
        if at_s >= from_s and state.recording and state.joints_told
    ]
    if len(times) > 10:
        values["states_hz"] = round((len(times) - 1) / (times[-1] - times[0]), 1)
    if leave is not None and context.recorder.lists:
        values["listed_after_s"] = _listing_delay_s(context, OWN_NAME, leave)
    listed = (await context.robot.actions()).find(OWN_NAME)
    _learn_list_format(context)
    values["listed"] = listed is not None
    values["listed_s"] = None if listed is None else round(listed.duration_s, 2)
    context.add_measured("teaching", **values)


def _listing_delay_s(context: TrialContext, name: str, leave_s: float) -> float | None:
    """Return the time from the end of a teaching until the list had its action."""
    quoted = json.dumps(name)
    for entry in context.recorder.conversation:
        if entry.at_s >= leave_s and not entry.sent and entry.api == _LIST and entry.is_text:
            if quoted in entry.message.replace('\\"', '"'):
                return rounded(entry.at_s - leave_s)
        elif (
            entry.at_s >= leave_s
            and not entry.sent
            and entry.api == _LIST
            and name.encode().hex() in entry.message
        ):
            return rounded(entry.at_s - leave_s)
    return None


async def overwrite(context: TrialContext) -> None:
    """Teach the same name again."""
    before = (await context.robot.actions()).find(OWN_NAME)
    if before is None:
        raise StepImpossibleError(
            f"{OWN_NAME} is not on the robot: the step before did not store it"
        )
    from_s = context.now_s
    code = await context.refusal_code(_teach_action(context, OWN_NAME, AGAIN_S))
    api = _TEACH if context.has_services else _FRAME_ENTER
    context.add_refusal(api, "taught under a name that exists", 0, code)
    await context.wait_until_idle()
    actions = await context.robot.actions()
    named = [each for each in actions.taught if each.name == OWN_NAME]
    new = bool(named) and named[-1].duration_s > before.duration_s + 0.5
    decoded = bool(named) and bool(named[-1].duration_s)
    replaced = code == 0 and len(named) == 1 and (new or not decoded)
    context.add_measured("teaching", overwrites=replaced, same_name=len(named))
    _collect_linger_time(context, from_s)


def _collect_linger_time(context: TrialContext, from_s: float) -> None:
    """Record how long the arms stayed soft after one more teaching."""
    spans = context.activity_spans(from_s)
    soft = [span for span in spans if span[0] == "recording"]
    leave = context.last_sent_at(_TEACH if context.has_services else _FRAME_EXIT, from_s)
    if soft and leave is not None:
        lingers = context.measured.setdefault("teaching", {}).setdefault("all_lingers_s", [])
        lingers.append(rounded(max(0.0, soft[-1][2] - leave)))


async def pause(context: TrialContext) -> None:
    """Teach with a pause."""
    robot, from_s = context.robot, context.now_s
    context.own_actions.add(PAUSE)
    async with robot.teach(PAUSE, overwrite=True, force=True) as take:
        await asyncio.sleep(1.0)
        paused = await context.refusal_code(take.pause())
        await asyncio.sleep(PAUSED_S)
        resumed = await context.refusal_code(take.resume()) if paused == 0 else None
        await asyncio.sleep(1.0)
    context.saved_actions.add(PAUSE)
    context.add_refusal(_PAUSE, "paused while it records", 0, paused)
    await context.wait_until_idle()
    listed = (await robot.actions()).find(PAUSE)
    left_out = None
    if listed is not None and listed.duration_s:
        left_out = listed.duration_s < 2.0 + PAUSED_S - 0.5
    context.add_measured(
        "teaching", pause_code=paused, resume_code=resumed, pause_left_out=left_out
    )
    _collect_linger_time(context, from_s)


async def names(context: TrialContext) -> None:
    """Rename the trial's own action to names of several kinds, and back."""
    if (await context.robot.actions()).find(OWN_NAME) is None:
        raise StepImpossibleError(
            f"{OWN_NAME} is not on the robot: the step before did not store it"
        )
    results: dict[str, str] = {}
    longest, refused_at = 0, 0
    for kind, name in NAMES.items():
        code = await context.refusal_code(rename_action(context, OWN_NAME, name))
        if code is None:
            results[kind] = "not asked"
            continue
        if code:
            results[kind] = f"refused with {code}"
            refused_at = min(refused_at or 10**6, len(name.encode()))
            context.add_refusal(_RENAME, f"renamed to {kind}", 0, code)
            continue
        context.own_actions.add(name)
        taught = [action.name for action in (await context.robot.actions()).taught]
        if name in taught:
            results[kind] = "taken"
            longest = max(longest, len(name.encode()))
            back = name
        else:
            others = [each for each in taught if name.startswith(each) and len(each) > 4]
            results[kind] = f"cut to {len(others[0].encode())} bytes" if others else "changed"
            back = others[0] if others else name
            context.own_actions.add(back)
        context.saved_actions = (context.saved_actions - {OWN_NAME}) | {back}
        if await context.refusal_code(rename_action(context, back, OWN_NAME)) == 0:
            context.own_actions -= {name, back}
            context.saved_actions = (context.saved_actions - {back}) | {OWN_NAME}
    context.add_measured(
        "names", results=results, longest_bytes=longest, refused_bytes=refused_at or None
    )


async def rename_action(context: TrialContext, old: str, new: str) -> None:
    """Rename by the services if available: they may take longer names than rote."""
    client = context.tap.client
    if isinstance(client, ServicesClient):
        text = rpc.write_json({"pre_name": old, "new_name": new})
        await client.call(rpc.Call(rpc.ARM, rpc.ArmApi.RENAME_TAUGHT, text), verified=True)
    else:
        await context.robot.rename(old, new)


async def missing(context: TrialContext) -> None:
    """Ask to delete and to rename an action that does not exist."""
    deleted = await context.refusal_code(context.robot.delete(MISSING))
    context.add_refusal(_DELETE, "deleted what is not there", int(Code.NO_SUCH_ACTION), deleted)
    renamed = await context.refusal_code(rename_action(context, MISSING, f"{MISSING}-2"))
    context.add_refusal(_RENAME, "renamed what is not there", int(Code.NO_SUCH_ACTION), renamed)


async def lapse(context: TrialContext) -> None:
    """Make the arms soft, send no keep-alives, and wait until the robot makes them hold."""
    context.own_actions.add(LAPSE)
    begun_s = context.now_s
    try:
        context.arms_may_be_soft = True  # also if only the answer is lost
        await _start_teaching_without_keep_alives(context)
        asked_s = context.now_s
        if await context.wait_for_state(lambda state: state.arms_soft, 3.0) is None:
            raise StepImpossibleError("the robot does not report that its arms got soft")
        context.note("the arms are soft, and no keep-alive is sent")
        held_s = await context.wait_for_state(lambda state: not state.arms_soft, LAPSE_LIMIT_S)
    finally:
        context.tap.hold_back = _hold_back_nothing
        await to_the_end(
            make_arms_hold(context)
        )  # a cancelled trial must not leave soft arms behind
    sent_s = context.sent_at(_TEACH if context.has_services else _FRAME_ENTER, begun_s) or asked_s
    lasted_s = None if held_s is None else rounded(held_s - sent_s, 2)
    context.add_measured("teaching", lapse_s=lasted_s)
    await context.wait_until_idle()
    stored = (await context.robot.actions()).find(LAPSE) is not None
    if stored:
        context.saved_actions.add(LAPSE)
    context.add_measured("teaching", lapse_stored=stored)


def _hold_back_nothing(_: Message) -> bool:
    return False


def _is_keep_alive(message: Message) -> bool:
    """Whether a frame keeps a teaching alive."""
    if isinstance(message, str):
        return False
    try:
        frame = teaching.decode(message)
    except DecodeError:
        return False
    is_enter = frame.command == teaching.CommandId.TEACHING
    return is_enter and len(frame.payload) == teaching.SHORT


async def _start_teaching_without_keep_alives(context: TrialContext) -> None:
    client = context.tap.client
    if isinstance(client, ServicesClient):
        await client.call(rpc.start_teaching(LAPSE), verified=True)
        return
    assert isinstance(client, TeachingClient)
    context.tap.hold_back = _is_keep_alive
    reply = await client.ask(m.EnterTeaching(client.latest))
    if isinstance(reply, m.Status) and reply.code:
        raise RefusedError(reply.code, *m.explain(reply.code))


async def make_arms_hold(context: TrialContext) -> None:
    """Make the arms hold; `context.arms_may_be_soft` stays set if the robot did not confirm it."""
    client = context.tap.client
    with suppress(RoteError):
        if isinstance(client, ServicesClient):
            await client.call(rpc.STOP_TEACHING, verified=True)
        elif isinstance(client, TeachingClient):
            await client.ask(m.ExitTeaching())
        context.arms_may_be_soft = False
    state = context.robot.state
    if state is not None and state.phase_told and not state.arms_soft:
        context.arms_may_be_soft = False  # it may refuse because they hold already


# ---- move ---------------------------------------------------------------------------------------


async def _find_own_action(context: TrialContext) -> TaughtAction:
    found = (await context.robot.actions()).find(OWN_NAME)
    if found is None:
        raise StepImpossibleError(
            f"{OWN_NAME} is not on the robot: teach it first (the step `teach`)"
        )
    return found


async def play(context: TrialContext) -> None:
    """Play the trial's own action."""
    listed_s = (await _find_own_action(context)).duration_s
    from_s = context.now_s
    try:
        report = await context.robot.play(OWN_NAME)
    except NotBegunError:
        context.add_measured("playing", never_moved=True)
        raise
    await context.wait_until_idle()
    values = _measure_playback(context, from_s)
    values |= {"completed": report.completed, "listed_s": round(listed_s, 2)}
    context.add_measured("playing", **values)
    _note_start_delay(context, from_s)


def _measure_playback(context: TrialContext, from_s: float) -> dict[str, Any]:
    spans = context.activity_spans(from_s)
    moving = [span for span in spans if span[0] in ("approach", "playing")]
    values: dict[str, Any] = {}
    if moving:
        begin, end = moving[0][1], moving[-1][2]
        own = [span for span in moving if span[0] == "playing"]
        values["moving_s"] = rounded(end - begin)
        values["played_s"] = rounded(own[-1][2] - own[0][1]) if own else None
        values["approach_s"] = rounded(own[0][1] - begin) if own else None
        after = [span for span in spans if span[1] >= end - 1e-9 and span[0] == "return"]
        values["return_s"] = rounded(sum(last - first for _, first, last in after))
        values |= _measure_motion(context, begin, end)
    return values


def _measure_motion(context: TrialContext, begin_s: float, end_s: float) -> dict[str, Any]:
    rows = [
        (at_s, state)
        for at_s, state in context.recorder.states
        if begin_s - 0.3 <= at_s <= end_s and state.joints_told and state.joints_rad
    ]
    if len(rows) < 3:
        return {}
    poses = np.array([state.joints_rad for _, state in rows])
    times = np.array([at_s for at_s, _ in rows])
    steps = np.abs(np.diff(poses, axis=0)).max(axis=1)
    early = times[1:] <= begin_s + 0.5
    return {
        "moved_rad": round(float(np.ptp(poses, axis=0).max()), 3),
        "first_step_rad": round(float(steps[early].max()), 4) if early.any() else None,
        "fastest_rad_s": round(float((steps / np.maximum(np.diff(times), 1e-3)).max()), 3),
    }


def _note_start_delay(context: TrialContext, from_s: float) -> None:
    answered = context.answered_at(_PLAY if context.has_services else _FRAME_PLAY, from_s)
    begins = [
        span[1] for span in context.activity_spans(from_s) if span[0] in ("approach", "playing")
    ]
    if answered is not None and begins:
        starts = context.measured.setdefault("playing", {}).setdefault("starts_after_s", [])
        starts.append(rounded(begins[0] - answered))


async def stop(context: TrialContext) -> None:
    """Stop the trial's own action in the middle."""
    await _find_own_action(context)
    from_s = context.now_s
    await _start_playback(context)
    asked_s = context.now_s
    await context.robot.stop()
    answered_s = context.now_s
    seen_s = await context.wait_for_state(lambda state: state.phase is not Phase.PLAYING, 5.0)
    await context.wait_until_idle()
    spans = [span for span in context.activity_spans(asked_s) if span[0] == "return"]
    context.add_measured(
        "playing",
        stop_answer_s=rounded(answered_s - asked_s),
        stop_seen_s=None if seen_s is None else rounded(seen_s - asked_s),
        stop_return_s=rounded(sum(end - begin for _, begin, end in spans)),
    )
    _note_start_delay(context, from_s)


async def _start_playback(context: TrialContext) -> None:
    """Start playing, and return a moment after the arms begin to move."""
    await context.robot.start(OWN_NAME)
    begun = await context.wait_for_state(lambda state: state.playing, 5.0)
    if begun is None:
        await context.robot.stop()
        raise StepImpossibleError("the robot does not report that it plays")
    await asyncio.sleep(0.8)


async def refused(context: TrialContext) -> None:
    """Ask to play an action that does not exist, and a second one while one plays."""
    client = context.tap.client
    api = _PLAY if context.has_services else _FRAME_PLAY
    if isinstance(client, ServicesClient):
        asking: Awaitable[object] = client.call(rpc.play_taught(MISSING), verified=True)
    else:
        asking = _send_command(context, m.PlayAction(action=250))
    code = await context.refusal_code(asking)
    context.add_refusal(api, "played what is not there", int(Code.NO_SUCH_ACTION), code)
    if code == 0:
        await context.robot.stop()
    own = await _find_own_action(context)
    await _start_playback(context)
    try:
        if isinstance(client, ServicesClient):
            again: Awaitable[object] = client.call(rpc.play_taught(OWN_NAME), verified=True)
        else:
            again = _send_command(context, m.PlayAction(action=own.position, name=OWN_NAME))
        code = await context.refusal_code(again)
    finally:
        await context.robot.stop()
    context.add_refusal(api, "played while it plays", int(Code.BUSY), code)
    await context.wait_until_idle()


async def _send_command(context: TrialContext, command: m.Command) -> None:
    """Send a command by the teaching frames; raise `RefusedError` if it is refused."""
    client = context.tap.client
    assert isinstance(client, TeachingClient)
    reply = await client.ask(command)
    if isinstance(reply, m.Status) and reply.code:
        raise RefusedError(reply.code, *m.explain(reply.code))


async def preset(context: TrialContext) -> None:
    """Let the robot do a factory action."""
    presets = (await context.robot.actions()).presets
    chosen = next((each for each in presets if each.id in PRESETS), None)
    if chosen is None:
        raise StepImpossibleError("the robot lists neither preset 26 nor 27")
    from_s = context.now_s
    api = f"{rpc.ARM}/{int(rpc.ArmApi.EXECUTE_PRESET)}"
    await context.robot.perform(chosen.id)
    took_s = context.now_s - from_s
    answered, asked = context.answered_at(api, from_s), context.sent_at(api, from_s)
    await context.wait_until_idle()
    spans = [span for span in context.activity_spans(from_s) if span[0] == "playing"]
    at_end = None
    if answered is not None and spans:
        at_end = answered >= spans[-1][2] - 0.5
    context.add_measured(
        "preset",
        id=chosen.id,
        seconds=rounded(took_s, 2),
        answered_after_s=None if answered is None or asked is None else rounded(answered - asked),
        answered_at_end=at_end,
    )


async def other_stop(context: TrialContext) -> None:
    """Let a second client stop a playback."""
    await _find_own_action(context)
    await _start_playback(context)
    try:
        async with context.connect_another() as other:
            asked_s = context.now_s
            await other.stop()
            seen_s = await context.wait_for_state(
                lambda state: state.phase is not Phase.PLAYING, 5.0
            )
    finally:
        await context.robot.stop()
    context.add_measured(
        "playing", other_stop_seen_s=None if seen_s is None else rounded(seen_s - asked_s)
    )
    await context.wait_until_idle()


async def delete_own_actions(context: TrialContext) -> list[str]:
    """Delete what the trial stored; return the names that remain on the robot."""
    with suppress(RoteError):
        taught = {action.name for action in (await context.robot.actions()).taught}
        left = sorted(context.own_actions & taught)
        if "delete" not in context.robot.abilities:
            return left
        for name in list(left):
            with suppress(RoteError):
                await context.robot.delete(name)
                left.remove(name)
        return left
    return sorted(context.saved_actions)


G1_STEPS: dict[str, Callable[[TrialContext], Awaitable[None]]] = {
    "discover": discover,
    "connect": connect,
    "listen": listen,
    "services": services,
    "list": list_actions,
    "wrong-mode": wrong_mode,
    "teach": teach,
    "overwrite": overwrite,
    "pause": pause,
    "names": names,
    "missing": missing,
    "lapse": lapse,
    "play": play,
    "stop": stop,
    "refused": refused,
    "preset": preset,
    "other-stop": other_stop,
}
