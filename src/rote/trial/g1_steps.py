"""The steps for a robot that stores actions: a G1 and its relatives.

Limbs go soft only inside `robot.teach`, which makes them hold however it ends. The lapse step is
the one exception: it ends the teaching itself in every case.
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
from rote.trial.context import (
    OWN_NAME,
    ActivitySpan,
    StepImpossibleError,
    TrialContext,
    round_or_none,
)
from rote.wire.dds import lowlevel as dds_lowlevel
from rote.wire.services import rpc
from rote.wire.services.json_shape import learn_shape
from rote.wire.services.list_format import learn_list_format
from rote.wire.services.lowstate import BMS_TOPIC, LOWSTATE_TOPIC, SPORT_TOPIC
from rote.wire.teaching import codec as teaching

LISTEN_S, TEACH_S, AGAIN_S, PAUSED_S = 4.0, 2.0, 3.5, 2.0
"""Durations in seconds: listening, teaching, teaching again, and the pause of a recording."""
LAPSE_LIMIT_S = 30.0
"""Timeout for the robot to make its arms hold by itself without keep-alives."""
HOLD_S = 5.0
"""Timeout for the robot to report that its arms hold after a teaching."""
PAUSE, LAPSE, MISSING = f"{OWN_NAME}-pause", f"{OWN_NAME}-lapse", f"{OWN_NAME}-none"
"""Names of actions: those of the pause and the lapse step, and one that is not on the robot."""
EXTRA_TOPICS = ("rt/multiplestate", "rt/servicestate", "rt/odommodestate", "rt/lf/secondary_imu")
"""Topics that other clients subscribe to and rote does not need."""
NAMES = {
    "space": "rote trial",
    "foreign": "rote-试-é",
    "31 bytes": "rote-trial-" + "a" * 20,
    "64 bytes": "rote-trial-" + "b" * 53,
    "120 bytes": "rote-trial-" + "c" * 109,
}
"""Names to which the trial renames its own action, by kind."""
PRESETS = (26, 27)
"""The factory actions that a trial plays: waving, shaking hands."""
_VERSION_API = 1
_LIST = f"{rpc.ARM}/{int(rpc.ArmApi.LIST_ACTIONS)}"
_TEACH = f"{rpc.ARM}/{int(rpc.ArmApi.TEACH)}"
_PLAY = f"{rpc.ARM}/{int(rpc.ArmApi.PLAY_TAUGHT)}"
_PAUSE = f"{rpc.ARM}/{int(rpc.ArmApi.PAUSE_TEACHING)}"
_DELETE = f"{rpc.ARM}/{int(rpc.ArmApi.DELETE_TAUGHT)}"
_RENAME = f"{rpc.ARM}/{int(rpc.ArmApi.RENAME_TAUGHT)}"
_FRAME_LIST, _FRAME_ENTER, _FRAME_EXIT, _FRAME_PLAY = "0x1a", "0x0d", "0x0e", "0x41"
"""The commands of the teaching frames, as the recorder names them."""


# ---- look ---------------------------------------------------------------------------------------


async def search_network(context: TrialContext) -> None:
    """Search the network, and record whether this robot answers a search for any robot."""
    from rote.transport import discovery  # noqa: PLC0415 - brings ifaddr

    parts = split_url(context.url)
    found = [robot async for robot in discovery.discover(seconds=2.0)]
    is_found = any(
        parts.hostname == robot.address or parts.netloc == robot.serial for robot in found
    )
    context.add_measured("discovery", answers_everybody=is_found)


async def record_connection(context: TrialContext) -> None:
    """Record the duration of each stage of connecting, and the properties of the robot."""
    stages = context.tap.stages
    durations = [
        {"stage": stage.name, "seconds": round(following.at_s - stage.at_s, 4)}
        for stage, following in pairwise(stages)
    ]
    total_s = stages[-1].at_s - stages[0].at_s if stages else 0.0
    context.add_measured("connect", stages=durations, total_s=round(total_s, 4))
    build = context.robot.build
    context.measured |= {
        "signalling": context.tap.signalling or None,
        "message_bytes": context.tap.max_message_bytes,
        "family": build.family,
        "build": build.name,
        "known": build.known,
        "joints": len(build.joints),
        "abilities": sorted(context.robot.abilities),
    }


async def listen_to_topics(context: TrialContext) -> None:
    """Record the rates of all topics for `LISTEN_S` seconds, and the shapes of their messages."""
    # The recorder counts the messages; a topic only has to be subscribed to.
    unsubscribers = [
        context.robot.on_topic(topic, lambda _: None)
        for topic in (EXTRA_TOPICS if "topics" in context.robot.abilities else ())
    ]
    from_s = context.now_s
    on_dds: dict[str, Any] = {}
    if context.wire == "dds":
        on_dds = await _listen_on_dds(context)
    else:
        await asyncio.sleep(LISTEN_S)
    for unsubscribe in unsubscribers:
        unsubscribe()
    topics = context.recorder.measure_rates(from_s, context.now_s)
    topics |= on_dds.get("topics", {})
    context.measured["topics"] = {
        topic: rate for topic, rate in sorted(topics.items()) if not topic.startswith("our ")
    }
    if on_dds:
        context.add_measured("bus", seen=on_dds["seen"])
    state = context.robot.state
    if state is not None:
        context.measured["mode"] = state.mode
        context.measured["joints_told"] = len(state.joints_rad)
    _record_shapes(context)


def _record_shapes(context: TrialContext) -> None:
    """Record the shapes of the state messages, and what the client learned about the robot."""
    recorder = context.recorder
    client = context.tap.client
    shapes = context.measured.setdefault("shapes", {})
    for name, topic in (
        ("lowstate", LOWSTATE_TOPIC),
        ("arm_state", rpc.ARM_STATE_TOPIC),
        ("sport", SPORT_TOPIC),
        ("battery", BMS_TOPIC),
    ):
        shape = recorder.find_shape(topic)
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
    """Listen on DDS with a separate reader, because the robot's client reads only some states.

    Returns the rates of joint states under `topics`, and all topic names under `seen`.
    """
    from rote.transport.dds import types  # noqa: PLC0415 - needs the carrier's library

    carrier = import_carrier(context.url)
    bus = carrier.Bus(carrier.read_url(split_url(context.url)))
    sizes: list[int] = []
    try:
        bus.reader(
            dds_lowlevel.LOWSTATE_TOPIC,
            types.LOWSTATE,
            lambda data: sizes.append(len(data)),
            depth=256,
            reliable=False,
        )
        await asyncio.sleep(1.0)  # until the robot has found the reader
        sizes.clear()
        await asyncio.sleep(LISTEN_S - 1.0)
        written, read = bus.discovered_topics()
    finally:
        bus.close()
    topics: dict[str, Any] = {}
    if sizes:
        hz = round(len(sizes) / (LISTEN_S - 1.0), 2)
        topics[dds_lowlevel.LOWSTATE_TOPIC] = {"hz": hz, "bytes": sizes[0]}
    return {"topics": topics, "seen": sorted(name for name in written | read if "rote" not in name)}


async def query_services(context: TrialContext) -> None:
    """Request the versions of the services, the mode and the controller."""
    if not context.has_services:
        mode = await context.robot.modes.read()
        context.measured["mode"] = mode.id
        raise StepImpossibleError(
            "a connection over teaching frames has no services; only the mode was read"
        )
    client = context.tap.client
    assert isinstance(client, ServicesClient)
    versions: dict[str, str | None] = {}
    for name in (rpc.ARM, rpc.SPORT, rpc.MOTION_SWITCHER, rpc.ROBOT_STATE, rpc.VOICE):
        try:
            versions[name] = (await client.call(rpc.Call(name, _VERSION_API), read=True)).text
        except RefusedError as refused:
            versions[name] = f"refused with {refused.code}"
        except RoteError:
            versions[name] = None
    controller: str | None = None
    with suppress(RoteError):
        controller = await context.robot.controller()
    context.add_measured("services", versions=versions, controller=controller)
    code = await context.await_answer_code(client.call(rpc.GET_FSM, read=True))
    context.add_answer_code(
        f"{rpc.SPORT}/{int(rpc.SportApi.GET_FSM)}", "asked for the mode", 0, code
    )
    if context.recorder.modes:
        answers = [_parse_json(text) for text in context.recorder.modes]
        context.measured.setdefault("shapes", {})["mode"] = learn_shape(answers)
        context.measured["mode_said"] = answers[-1]


def _parse_json(text: str) -> Any:
    """Return the JSON value of a text, or the text itself if it is not JSON."""
    try:
        return json.loads(text.strip("\ufeff\0"), strict=False)
    except ValueError:
        return text


async def list_actions(context: TrialContext) -> None:
    """Request the list of actions several times, and record its format."""
    code: int | None = 0
    for _ in range(3):
        code = await context.await_answer_code(context.robot.actions())
    context.add_answer_code(
        _LIST if context.has_services else _FRAME_LIST, "asked for the list", 0, code
    )
    if code:
        raise StepImpossibleError(f"the robot refuses to list its actions (code {code})")
    actions = await context.robot.actions()
    _record_list_format(context)
    context.add_measured(
        "list",
        presets=len(actions.presets),
        taught=len(actions.taught),
        notes=_find_list_notes(context),
    )


def _record_list_format(context: TrialContext) -> None:
    if context.recorder.lists:
        context.add_measured(
            "list", format=learn_list_format([_parse_json(text) for text in context.recorder.lists])
        )


def _find_list_notes(context: TrialContext) -> list[str]:
    """Return the parts of the list that rote could not read, without names."""
    if not context.recorder.lists:
        return []
    with suppress(DecodeError):
        decoded = rpc.decode_actions(context.recorder.lists[-1])
        # A note quotes names, so its part before the first quote has none.
        return sorted({note.split("'")[0].strip() for note in decoded.notes})
    return ["not a list"]


async def teach_without_balance(context: TrialContext) -> None:
    """Request teaching while the robot does not balance; record whether it refuses."""
    mode = await context.robot.modes.read()
    if not mode.known:
        raise StepImpossibleError(
            "the robot does not report its mode; this step needs a damped robot that hangs"
        )
    if mode.balanced:
        raise StepImpossibleError("the robot balances; this step needs a damped robot that hangs")
    name = f"{OWN_NAME}-mode"
    code = await context.await_answer_code(_teach_briefly(context, name))
    context.add_answer_code(_TEACH, "taught without balance", int(Code.WRONG_STATE), code)
    if code == 0:
        context.own_actions.add(name)
        context.saved_actions.add(name)


async def _teach_briefly(context: TrialContext, name: str) -> None:
    async with context.robot.teach(name, force=True):
        await asyncio.sleep(0.2)


# ---- hold ---------------------------------------------------------------------------------------


async def teach_own_action(context: TrialContext) -> None:
    """Teach the trial's own action; record how the robot reacts before, during and after it."""
    from_s = context.now_s
    await _teach_action(context, OWN_NAME, TEACH_S)
    await context.wait_until_idle()
    await _measure_teaching(context, from_s, TEACH_S)


async def _teach_action(context: TrialContext, name: str, seconds: float) -> None:
    """Teach an action for some seconds, and tell the operator whether the arms hold again."""
    robot = context.robot
    context.own_actions.add(name)
    async with robot.teach(name, overwrite="overwrite" in robot.abilities, force=True):
        context.note("the arms are soft")
        if "hand" in robot.abilities:
            await robot.move_by_hand("wave", seconds)
        await asyncio.sleep(seconds)
    context.saved_actions.add(name)
    held_s = await context.wait_for_state(
        lambda state: state.has_phase and not state.arms_soft, HOLD_S
    )
    context.note(
        "the robot does not report that its arms hold: check the arms before you release them"
        if held_s is None
        else "the arms hold again"
    )


async def _measure_teaching(context: TrialContext, from_s: float, taught_s: float) -> None:
    """Record how fast the robot began and ended teaching, and whether it lists the action."""
    spans = context.find_activity_spans(from_s)
    enter_s = context.find_first_request_s(_name_enter_request(context), from_s)
    exit_s = context.find_last_request_s(_name_exit_request(context), from_s)
    soft = [span for span in spans if span.activity in ("recording", "soft")]
    values: dict[str, Any] = {"taught_s": taught_s}
    if soft and enter_s is not None and exit_s is not None:
        held_s = soft[-1].end_s
        values["starts_after_s"] = round_or_none(soft[0].begin_s - enter_s)
        values["lingers_s"] = round_or_none(held_s - exit_s)
        values["release_s"] = _sum_returns_s(spans, held_s)
    times = [
        at_s
        for at_s, state in context.recorder.states
        if at_s >= from_s and state.recording and state.has_joints
    ]
    if len(times) > 10:
        values["states_hz"] = round((len(times) - 1) / (times[-1] - times[0]), 1)
    if exit_s is not None and context.recorder.lists:
        values["listed_after_s"] = _find_listing_delay_s(context, OWN_NAME, exit_s)
    listed = (await context.robot.actions()).find(OWN_NAME)
    _record_list_format(context)
    values["listed"] = listed is not None
    values["listed_s"] = None if listed is None else round(listed.duration_s, 2)
    context.add_measured("teaching", **values)


def _name_enter_request(context: TrialContext) -> str:
    """Return the recorder's name of the request that makes the arms soft."""
    return _TEACH if context.has_services else _FRAME_ENTER


def _name_exit_request(context: TrialContext) -> str:
    """Return the recorder's name of the request that ends teaching."""
    return _TEACH if context.has_services else _FRAME_EXIT


def _sum_returns_s(spans: list[ActivitySpan], from_s: float) -> float | None:
    """Return for how long the arms returned to rest since `from_s`; None if they did not."""
    earliest_s = from_s - 1e-9  # tolerance for rounding
    returns = [
        span.duration_s
        for span in spans
        if span.activity == "return" and span.begin_s >= earliest_s
    ]
    return round_or_none(sum(returns)) if returns else None


def _find_listing_delay_s(context: TrialContext, name: str, exit_s: float) -> float | None:
    """Return the time from the end of a teaching until the list contained its action."""
    quoted, hexadecimal = json.dumps(name), name.encode().hex()
    for entry in context.recorder.conversation:
        if entry.sent or entry.api != _LIST or entry.at_s < exit_s:
            continue
        if entry.is_text:  # JSON, in which the list is JSON text with escaped quotes
            is_listed = quoted in entry.message.replace('\\"', '"')
        else:
            is_listed = hexadecimal in entry.message
        if is_listed:
            return round_or_none(entry.at_s - exit_s)
    return None


async def teach_same_name(context: TrialContext) -> None:
    """Teach the same name for longer; record whether the new action replaces the first."""
    before = (await context.robot.actions()).find(OWN_NAME)
    if before is None:
        raise StepImpossibleError(f"{OWN_NAME} is not on the robot: no step has stored it")
    from_s = context.now_s
    code = await context.await_answer_code(_teach_action(context, OWN_NAME, AGAIN_S))
    api = _name_enter_request(context)
    context.add_answer_code(api, "taught under a name that exists", 0, code)
    await context.wait_until_idle()
    actions = await context.robot.actions()
    named = [action for action in actions.taught if action.name == OWN_NAME]
    replaced = False
    if code == 0 and len(named) == 1:
        listed_s = named[0].duration_s
        # A robot that does not list durations shows only that there is one action of this name.
        replaced = not listed_s or listed_s > before.duration_s + 0.5
    context.add_measured("teaching", overwrites=replaced, same_name=len(named))
    _collect_linger_time(context, from_s)


def _collect_linger_time(context: TrialContext, from_s: float) -> None:
    """Record how long the arms stayed soft after one more teaching."""
    recording = [
        span for span in context.find_activity_spans(from_s) if span.activity == "recording"
    ]
    exit_s = context.find_last_request_s(_name_exit_request(context), from_s)
    if recording and exit_s is not None:
        lingers = context.measured.setdefault("teaching", {}).setdefault("all_lingers_s", [])
        lingers.append(round_or_none(max(0.0, recording[-1].end_s - exit_s)))


async def pause_recording(context: TrialContext) -> None:
    """Teach with a pause; record whether the action leaves the pause out."""
    robot, from_s = context.robot, context.now_s
    context.own_actions.add(PAUSE)
    async with robot.teach(PAUSE, overwrite=True, force=True) as take:
        await asyncio.sleep(1.0)
        paused = await context.await_answer_code(take.pause())
        await asyncio.sleep(PAUSED_S)
        resumed = await context.await_answer_code(take.resume()) if paused == 0 else None
        await asyncio.sleep(1.0)
    context.saved_actions.add(PAUSE)
    context.add_answer_code(_PAUSE, "paused while it records", 0, paused)
    await context.wait_until_idle()
    listed = (await robot.actions()).find(PAUSE)
    left_out = None
    if listed is not None and listed.duration_s:
        recorded_s = 2.0  # a second before the pause, and a second after it
        left_out = listed.duration_s < recorded_s + PAUSED_S - 0.5
    context.add_measured(
        "teaching", pause_code=paused, resume_code=resumed, pause_left_out=left_out
    )
    _collect_linger_time(context, from_s)


async def try_names(context: TrialContext) -> None:
    """Rename the trial's own action to names of several kinds, and back."""
    if (await context.robot.actions()).find(OWN_NAME) is None:
        raise StepImpossibleError(f"{OWN_NAME} is not on the robot: no step has stored it")
    results: dict[str, str] = {}
    longest_bytes, refused_bytes = 0, 0
    for kind, name in NAMES.items():
        size = len(name.encode())
        code = await context.await_answer_code(rename_action(context, OWN_NAME, name))
        if code is None:
            results[kind] = "not asked"
        elif code:
            results[kind] = f"refused with {code}"
            refused_bytes = min(refused_bytes or size, size)
            context.add_answer_code(_RENAME, f"renamed to {kind}", 0, code)
        else:
            context.own_actions.add(name)  # at once: the next request may fail
            stored_name = await _find_stored_name(context, name)
            if stored_name == name:
                results[kind] = "taken"
                longest_bytes = max(longest_bytes, size)
            elif stored_name:
                results[kind] = f"cut to {len(stored_name.encode())} bytes"
            else:
                results[kind] = "changed"
            await _rename_back(context, stored_name or name, name)
    context.add_measured(
        "names", results=results, longest_bytes=longest_bytes, refused_bytes=refused_bytes or None
    )


async def _find_stored_name(context: TrialContext, name: str) -> str:
    """Return the name under which an action was stored: possibly cut, "" if it is not listed."""
    taught = [action.name for action in (await context.robot.actions()).taught]
    if name in taught:
        return name
    return next((other for other in taught if name.startswith(other) and len(other) > 4), "")


async def _rename_back(context: TrialContext, stored_name: str, requested_name: str) -> None:
    """Give the trial's own action its usual name again, and keep account of what is stored."""
    context.own_actions.add(stored_name)
    context.saved_actions = (context.saved_actions - {OWN_NAME}) | {stored_name}
    if await context.await_answer_code(rename_action(context, stored_name, OWN_NAME)) == 0:
        context.own_actions -= {requested_name, stored_name}
        context.saved_actions = (context.saved_actions - {stored_name}) | {OWN_NAME}


async def rename_action(context: TrialContext, old: str, new: str) -> None:
    """Rename an action; through the services if possible, to allow names that rote refuses."""
    client = context.tap.client
    if isinstance(client, ServicesClient):
        text = rpc.write_json({"pre_name": old, "new_name": new})
        await client.call(rpc.Call(rpc.ARM, rpc.ArmApi.RENAME_TAUGHT, text), verified=True)
    else:
        await context.robot.rename(old, new)


async def request_missing_action(context: TrialContext) -> None:
    """Request to delete and to rename an action that does not exist; record the refusals."""
    deleted = await context.await_answer_code(context.robot.delete(MISSING))
    context.add_answer_code(_DELETE, "deleted what is not there", int(Code.NO_SUCH_ACTION), deleted)
    renamed = await context.await_answer_code(rename_action(context, MISSING, f"{MISSING}-2"))
    context.add_answer_code(_RENAME, "renamed what is not there", int(Code.NO_SUCH_ACTION), renamed)


async def omit_keep_alives(context: TrialContext) -> None:
    """Make the arms soft, send no keep-alives, and wait until the robot makes them hold."""
    context.own_actions.add(LAPSE)
    begun_s = context.now_s
    try:
        context.arms_may_be_soft = True  # already now: the answer may be lost
        await _start_teaching_without_keep_alives(context)
        started_s = context.now_s
        if await context.wait_for_state(lambda state: state.arms_soft, 3.0) is None:
            raise StepImpossibleError("the robot does not report that its arms are soft")
        context.note("the arms are soft; rote sends no keep-alives")
        held_s = await context.wait_for_state(lambda state: not state.arms_soft, LAPSE_LIMIT_S)
    finally:
        context.tap.hold_back = _hold_back_nothing
        # To the end, because a cancelled trial must not leave soft arms behind.
        await to_the_end(make_arms_hold(context))
    sent_s = context.find_first_request_s(_name_enter_request(context), begun_s) or started_s
    lasted_s = None if held_s is None else round_or_none(held_s - sent_s, 2)
    context.add_measured("teaching", lapse_s=lasted_s)
    await context.wait_until_idle()
    stored = (await context.robot.actions()).find(LAPSE) is not None
    if stored:
        context.saved_actions.add(LAPSE)
    context.add_measured("teaching", lapse_stored=stored)


def _hold_back_nothing(_: Message) -> bool:
    return False


def _is_keep_alive(message: Message) -> bool:
    """Whether a message is a teaching frame that keeps a teaching alive."""
    if isinstance(message, str):
        return False
    try:
        frame = teaching.decode(message)
    except DecodeError:
        return False
    is_teaching = frame.command == teaching.CommandId.TEACHING
    return is_teaching and len(frame.payload) == teaching.SHORT


async def _start_teaching_without_keep_alives(context: TrialContext) -> None:
    """Make the arms soft, and prevent the keep-alives that the client would send by itself."""
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
    if state is not None and state.has_phase and not state.arms_soft:
        context.arms_may_be_soft = False  # the request may be refused because they hold already


# ---- move ---------------------------------------------------------------------------------------


async def _find_own_action(context: TrialContext) -> TaughtAction:
    found = (await context.robot.actions()).find(OWN_NAME)
    if found is None:
        raise StepImpossibleError(
            f"{OWN_NAME} is not on the robot: the step `teach` has not stored it"
        )
    return found


async def play_own_action(context: TrialContext) -> None:
    """Play the trial's own action; record how long the approach, playback and return take."""
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
    _collect_start_delay(context, from_s)


def _measure_playback(context: TrialContext, from_s: float) -> dict[str, Any]:
    """Return the durations of approach, playback and return, and how the joints moved."""
    spans = context.find_activity_spans(from_s)
    moving = [span for span in spans if span.activity in ("approach", "playing")]
    if not moving:
        return {}
    begin_s, end_s = moving[0].begin_s, moving[-1].end_s
    playing = [span for span in moving if span.activity == "playing"]
    return {
        "moving_s": round_or_none(end_s - begin_s),
        "played_s": round_or_none(playing[-1].end_s - playing[0].begin_s) if playing else None,
        "approach_s": round_or_none(playing[0].begin_s - begin_s) if playing else None,
        "return_s": _sum_returns_s(spans, end_s) or 0.0,
        **_measure_motion(context, begin_s, end_s),
    }


def _measure_motion(context: TrialContext, begin_s: float, end_s: float) -> dict[str, Any]:
    """Return how far and how fast the joint moved that moved most, between two times.

    `first_step_rad` is the largest move between two states at the beginning: a jump would show.
    """
    rows = [
        (at_s, state)
        for at_s, state in context.recorder.states
        if begin_s - 0.3 <= at_s <= end_s and state.has_joints and state.joints_rad
    ]
    if len(rows) < 3:
        return {}
    poses = np.array([state.joints_rad for _, state in rows])
    times = np.array([at_s for at_s, _ in rows])
    steps = np.abs(np.diff(poses, axis=0)).max(axis=1)
    is_early = times[1:] <= begin_s + 0.5
    return {
        "moved_rad": round(float(np.ptp(poses, axis=0).max()), 3),
        "first_step_rad": round(float(steps[is_early].max()), 4) if is_early.any() else None,
        "fastest_rad_s": round(float((steps / np.maximum(np.diff(times), 1e-3)).max()), 3),
    }


def _collect_start_delay(context: TrialContext, from_s: float) -> None:
    """Record the time from the robot's answer until its arms began to move."""
    api = _PLAY if context.has_services else _FRAME_PLAY
    answered_s = context.find_first_answer_s(api, from_s)
    begins_s = [
        span.begin_s
        for span in context.find_activity_spans(from_s)
        if span.activity in ("approach", "playing")
    ]
    if answered_s is not None and begins_s:
        starts = context.measured.setdefault("playing", {}).setdefault("starts_after_s", [])
        starts.append(round_or_none(begins_s[0] - answered_s))


async def stop_playback(context: TrialContext) -> None:
    """Stop the trial's own action in the middle; record how fast the robot stops."""
    await _find_own_action(context)
    from_s = context.now_s
    await _start_playback(context)
    requested_s = context.now_s
    await context.robot.stop()
    answered_s = context.now_s
    seen_s = await context.wait_for_state(lambda state: state.phase is not Phase.PLAYING, 5.0)
    await context.wait_until_idle()
    spans = context.find_activity_spans(requested_s)
    context.add_measured(
        "playing",
        stop_answer_s=round_or_none(answered_s - requested_s),
        stop_seen_s=None if seen_s is None else round_or_none(seen_s - requested_s),
        stop_return_s=_sum_returns_s(spans, requested_s) or 0.0,
    )
    _collect_start_delay(context, from_s)


async def _start_playback(context: TrialContext) -> None:
    """Start playing, and return a moment after the arms begin to move."""
    await context.robot.start(OWN_NAME)
    begun = await context.wait_for_state(lambda state: state.playing, 5.0)
    if begun is None:
        await context.robot.stop()
        raise StepImpossibleError("the robot does not report that it plays the action")
    await asyncio.sleep(0.8)


async def provoke_refusals(context: TrialContext) -> None:
    """Request to play a missing action, and another one during a playback; record the answers."""
    client = context.tap.client
    api = _PLAY if context.has_services else _FRAME_PLAY
    if isinstance(client, ServicesClient):
        request: Awaitable[object] = client.call(rpc.play_taught(MISSING), verified=True)
    else:
        request = _send_command(context, m.PlayAction(action=250))
    code = await context.await_answer_code(request)
    context.add_answer_code(api, "played what is not there", int(Code.NO_SUCH_ACTION), code)
    if code == 0:
        await context.robot.stop()
    action = await _find_own_action(context)
    await _start_playback(context)
    try:
        if isinstance(client, ServicesClient):
            request = client.call(rpc.play_taught(OWN_NAME), verified=True)
        else:
            request = _send_command(context, m.PlayAction(action=action.position, name=OWN_NAME))
        code = await context.await_answer_code(request)
    finally:
        await context.robot.stop()
    context.add_answer_code(api, "played while it plays", int(Code.BUSY), code)
    await context.wait_until_idle()


async def _send_command(context: TrialContext, command: m.Command) -> None:
    """Send a command by the teaching frames; raise `RefusedError` if it is refused."""
    client = context.tap.client
    assert isinstance(client, TeachingClient)
    reply = await client.ask(command)
    if isinstance(reply, m.Status) and reply.code:
        raise RefusedError(reply.code, *m.explain(reply.code))


async def play_preset(context: TrialContext) -> None:
    """Let the robot perform a factory action; record when it answers the request."""
    presets = (await context.robot.actions()).presets
    chosen = next((preset for preset in presets if preset.id in PRESETS), None)
    if chosen is None:
        raise StepImpossibleError("the robot lists neither preset 26 nor 27")
    from_s = context.now_s
    api = f"{rpc.ARM}/{int(rpc.ArmApi.EXECUTE_PRESET)}"
    await context.robot.perform(chosen.id)
    took_s = context.now_s - from_s
    sent_s = context.find_first_request_s(api, from_s)
    answered_s = context.find_first_answer_s(api, from_s)
    await context.wait_until_idle()
    playing = [span for span in context.find_activity_spans(from_s) if span.activity == "playing"]
    delay_s, is_at_end = None, None
    if answered_s is not None and sent_s is not None:
        delay_s = answered_s - sent_s
    if answered_s is not None and playing:
        is_at_end = answered_s >= playing[-1].end_s - 0.5
    context.add_measured(
        "preset",
        id=chosen.id,
        seconds=round_or_none(took_s, 2),
        answered_after_s=round_or_none(delay_s),
        answered_at_end=is_at_end,
    )


async def stop_from_other_client(context: TrialContext) -> None:
    """Let a second client stop a playback."""
    await _find_own_action(context)
    await _start_playback(context)
    try:
        async with context.connect_another() as other:
            requested_s = context.now_s
            await other.stop()
            seen_s = await context.wait_for_state(
                lambda state: state.phase is not Phase.PLAYING, 5.0
            )
    finally:
        await context.robot.stop()
    context.add_measured(
        "playing", other_stop_seen_s=None if seen_s is None else round_or_none(seen_s - requested_s)
    )
    await context.wait_until_idle()


async def delete_own_actions(context: TrialContext) -> list[str]:
    """Delete the actions that the trial stored; return the names that remain on the robot."""
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
    "discover": search_network,
    "connect": record_connection,
    "listen": listen_to_topics,
    "services": query_services,
    "list": list_actions,
    "wrong-mode": teach_without_balance,
    "teach": teach_own_action,
    "overwrite": teach_same_name,
    "pause": pause_recording,
    "names": try_names,
    "missing": request_missing_action,
    "lapse": omit_keep_alives,
    "play": play_own_action,
    "stop": stop_playback,
    "refused": provoke_refusals,
    "preset": play_preset,
    "other-stop": stop_from_other_client,
}
