"""How the steps are done with a robot that keeps actions: a G1 and its relatives.

Limbs get soft only inside `robot.teach`, which makes them hold however it ends; the one exception,
the lapse, ends the teaching by itself in every case.
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
from rote.transport.link import Message, carrier_of, split_url
from rote.transport.services_client import ServicesClient
from rote.transport.udp.client import TeachingClient
from rote.trial.scene import OWN, Scene, StepImpossibleError, rounded
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
PAUSE, LAPSE, MISSING = f"{OWN}-pause", f"{OWN}-lapse", f"{OWN}-none"
EXTRA_TOPICS = ("rt/multiplestate", "rt/servicestate", "rt/odommodestate", "rt/lf/secondary_imu")
"""Topics that other clients ask a robot for, and rote does not need."""
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


def services_of(scene: Scene) -> ServicesClient:
    """Return the client of the robot's services."""
    client = scene.tap.client
    if not isinstance(client, ServicesClient):
        raise StepImpossibleError("the teaching frames have no services")
    return client


# ---- look ---------------------------------------------------------------------------------------


async def discover(scene: Scene) -> None:
    """Ask the network for robots, for all and for this one."""
    from rote.transport import discovery  # noqa: PLC0415 - brings ifaddr

    parts = split_url(scene.url)
    found = [one async for one in discovery.discover(seconds=2.0)]
    own = [one for one in found if parts.hostname == one.address or parts.netloc == one.serial]
    scene.put("discovery", answers_everybody=bool(own))


async def connect(scene: Scene) -> None:
    """Note the stages of connecting."""
    stages = scene.tap.stages
    spans = [
        {"stage": one.name, "seconds": round(then.at_s - one.at_s, 4)}
        for one, then in pairwise(stages)
    ]
    total_s = stages[-1].at_s - stages[0].at_s if stages else 0.0
    scene.put("connect", stages=spans, total_s=round(total_s, 4))
    build = scene.robot.build
    scene.measured |= {
        "signalling": scene.tap.signalling or None,
        "message_bytes": scene.tap.most_bytes,
        "family": build.family,
        "build": build.name,
        "known": build.known,
        "joints": len(build.joints),
        "abilities": sorted(scene.robot.abilities),
    }


async def listen(scene: Scene) -> None:
    """Count the topics, and learn the shapes of their messages."""
    forget = [
        scene.robot.on_topic(topic, lambda _: None)
        for topic in (EXTRA_TOPICS if "topics" in scene.robot.abilities else ())
    ]
    from_s = scene.now_s
    bus: dict[str, Any] = {}
    if scene.wire == "dds":
        bus = await _listen_on_the_bus(scene)
    else:
        await asyncio.sleep(LISTEN_S)
    for each in forget:
        each()
    topics = scene.recorder.rates(from_s, scene.now_s)
    for topic, rate in bus.get("topics", {}).items():
        topics[topic] = rate
    scene.measured["topics"] = {
        topic: rate for topic, rate in sorted(topics.items()) if not topic.startswith("our ")
    }
    if bus:
        scene.put("bus", seen=bus["seen"])
    state = scene.robot.state
    if state is not None:
        scene.measured["mode"] = state.mode
        scene.measured["joints_told"] = len(state.joints_rad)
    _shapes(scene)


def _shapes(scene: Scene) -> None:
    recorder = scene.recorder
    client = scene.tap.client
    shapes = scene.measured.setdefault("shapes", {})
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
        scene.measured["slots"] = motors.get("count")
    if isinstance(client, ServicesClient):
        scene.measured["mode_machine"] = client.identity.machine
        scene.measured["clockless"] = client.clockless
        scene.measured["missing_joints"] = len(client.missing)
    elif isinstance(client, TeachingClient):
        scene.measured["clockless"] = client.clockless


async def _listen_on_the_bus(scene: Scene) -> dict[str, Any]:
    """Listen on DDS with readers of our own: the robot's client takes fewer states than come."""
    from rote.transport.dds import types  # noqa: PLC0415 - needs the carrier's library

    carrier = carrier_of(scene.url)
    bus = carrier.Bus(carrier.read_url(split_url(scene.url)))
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
        written, read = bus.seen()
    finally:
        bus.close()
    topics = {
        topic: {"hz": round(len(sizes) / (LISTEN_S - 1.0), 2), "bytes": sizes[0]}
        for topic, sizes in counts.items()
        if sizes
    }
    return {"topics": topics, "seen": sorted(name for name in written | read if "rote" not in name)}


async def services(scene: Scene) -> None:
    """Ask for versions, the mode and the controller."""
    if not scene.has_services:
        mode = await scene.robot.mode()
        scene.measured["mode"] = mode.id
        raise StepImpossibleError("the teaching frames have no services; the mode was read")
    client = services_of(scene)
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
        controller = await scene.robot.controller()
    scene.put("services", versions=versions, controller=controller)
    code = await scene.code_of(client.call(rpc.GET_FSM, read=True))
    scene.refusal(f"{rpc.SPORT}/{int(rpc.SportApi.GET_FSM)}", "asked for the mode", 0, code)
    if scene.recorder.modes:
        texts = [_json(text) for text in scene.recorder.modes]
        scene.measured["shapes"] = scene.measured.get("shapes", {})
        scene.measured["shapes"]["mode"] = shape_of(texts)
        scene.measured["mode_said"] = texts[-1]


def _json(text: str) -> Any:
    try:
        return json.loads(text.strip("\ufeff\0"), strict=False)
    except ValueError:
        return text


async def list_actions(scene: Scene) -> None:
    """Ask for the list, and learn its format."""
    code: int | None = 0
    for _ in range(3):
        code = await scene.code_of(scene.robot.actions())
    scene.refusal(_LIST if scene.has_services else _FRAME_LIST, "asked for the list", 0, code)
    if code:
        raise StepImpossibleError(f"the list is refused with {code}")
    actions = await scene.robot.actions()
    _learn_list(scene)
    scene.put("list", presets=len(actions.presets), taught=len(actions.taught), notes=_notes(scene))


def _learn_list(scene: Scene) -> None:
    if scene.recorder.lists:
        scene.put("list", format=list_format([_json(text) for text in scene.recorder.lists]))


def _notes(scene: Scene) -> list[str]:
    """Return what rote could not read in the list, without names."""
    if not scene.recorder.lists:
        return []
    with suppress(DecodeError):
        told = rpc.decode_actions(scene.recorder.lists[-1])
        return sorted({note.split("'")[0].strip() for note in told.notes})
    return ["not a list"]


async def wrong_mode(scene: Scene) -> None:
    """Ask to teach in a mode without balance, if the robot is in one."""
    mode = await scene.robot.mode()
    if not mode.known or mode.balanced:
        raise StepImpossibleError(
            "the robot stands balanced; damp a hanging robot first to have this step"
        )
    name = f"{OWN}-mode"
    code = await scene.code_of(_briefly(scene, name))
    scene.refusal(_TEACH, "taught without balance", int(Code.WRONG_STATE), code)
    if code == 0:
        scene.own.add(name)
        scene.saved.add(name)


async def _briefly(scene: Scene, name: str) -> None:
    async with scene.robot.teach(name, force=True):
        await asyncio.sleep(0.2)


# ---- hold ---------------------------------------------------------------------------------------


async def teach(scene: Scene) -> None:
    """Teach once, and see what the robot does before, meanwhile and afterwards."""
    from_s = scene.now_s
    await _teach(scene, OWN, TEACH_S)
    await scene.rest()
    await _after_teaching(scene, from_s, TEACH_S)


async def _teach(scene: Scene, name: str, seconds: float) -> None:
    robot = scene.robot
    scene.own.add(name)
    async with robot.teach(name, overwrite="overwrite" in robot.abilities, force=True):
        scene.note("the arms are soft")
        if "hand" in robot.abilities:
            await robot.move_by_hand("wave", seconds)
        await asyncio.sleep(seconds)
    scene.saved.add(name)
    if await scene.until(lambda state: state.phase_told and not state.arms_soft, HOLD_S) is None:
        scene.note("the robot does not report that its arms hold: look before you let go")
    else:
        scene.note("the arms hold again")


async def _after_teaching(scene: Scene, from_s: float, taught_s: float) -> None:
    spans = scene.spans(from_s)
    enter = scene.sent_at(_TEACH if scene.has_services else _FRAME_ENTER, from_s)
    leave = scene.last_sent_at(_TEACH if scene.has_services else _FRAME_EXIT, from_s)
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
        for at_s, state in scene.recorder.states
        if at_s >= from_s and state.recording and state.joints_told
    ]
    if len(times) > 10:
        values["states_hz"] = round((len(times) - 1) / (times[-1] - times[0]), 1)
    if leave is not None and scene.recorder.lists:
        values["listed_after_s"] = _listed_after(scene, OWN, leave)
    listed = (await scene.robot.actions()).find(OWN)
    _learn_list(scene)
    values["listed"] = listed is not None
    values["listed_s"] = None if listed is None else round(listed.duration_s, 2)
    scene.put("teaching", **values)


def _listed_after(scene: Scene, name: str, leave_s: float) -> float | None:
    """Return how long after the end of a teaching the list first had its action."""
    quoted = json.dumps(name)
    for entry in scene.recorder.conversation:
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


async def overwrite(scene: Scene) -> None:
    """Teach the same name again."""
    before = (await scene.robot.actions()).find(OWN)
    if before is None:
        raise StepImpossibleError(f"{OWN} is not on the robot: the step before did not store it")
    from_s = scene.now_s
    code = await scene.code_of(_teach(scene, OWN, AGAIN_S))
    api = _TEACH if scene.has_services else _FRAME_ENTER
    scene.refusal(api, "taught under a name that exists", 0, code)
    await scene.rest()
    actions = await scene.robot.actions()
    named = [each for each in actions.taught if each.name == OWN]
    new = bool(named) and named[-1].duration_s > before.duration_s + 0.5
    told = bool(named) and bool(named[-1].duration_s)
    replaced = code == 0 and len(named) == 1 and (new or not told)
    scene.put("teaching", overwrites=replaced, same_name=len(named))
    _more_times(scene, from_s)


def _more_times(scene: Scene, from_s: float) -> None:
    """Collect the release of one more teaching: distributions grow with every one."""
    spans = scene.spans(from_s)
    soft = [span for span in spans if span[0] == "recording"]
    leave = scene.last_sent_at(_TEACH if scene.has_services else _FRAME_EXIT, from_s)
    if soft and leave is not None:
        lingers = scene.measured.setdefault("teaching", {}).setdefault("all_lingers_s", [])
        lingers.append(rounded(max(0.0, soft[-1][2] - leave)))


async def pause(scene: Scene) -> None:
    """Teach with a pause."""
    robot, from_s = scene.robot, scene.now_s
    scene.own.add(PAUSE)
    async with robot.teach(PAUSE, overwrite=True, force=True) as take:
        await asyncio.sleep(1.0)
        paused = await scene.code_of(take.pause())
        await asyncio.sleep(PAUSED_S)
        resumed = await scene.code_of(take.resume()) if paused == 0 else None
        await asyncio.sleep(1.0)
    scene.saved.add(PAUSE)
    scene.refusal(_PAUSE, "paused while it records", 0, paused)
    await scene.rest()
    listed = (await robot.actions()).find(PAUSE)
    left_out = None
    if listed is not None and listed.duration_s:
        left_out = listed.duration_s < 2.0 + PAUSED_S - 0.5
    scene.put("teaching", pause_code=paused, resume_code=resumed, pause_left_out=left_out)
    _more_times(scene, from_s)


async def names(scene: Scene) -> None:
    """Rename the trial's own action to names of several kinds, and back."""
    if (await scene.robot.actions()).find(OWN) is None:
        raise StepImpossibleError(f"{OWN} is not on the robot: the step before did not store it")
    results: dict[str, str] = {}
    longest, refused_at = 0, 0
    for kind, name in NAMES.items():
        code = await scene.code_of(services_rename(scene, OWN, name))
        if code is None:
            results[kind] = "not asked"
            continue
        if code:
            results[kind] = f"refused with {code}"
            refused_at = min(refused_at or 10**6, len(name.encode()))
            scene.refusal(_RENAME, f"renamed to {kind}", 0, code)
            continue
        scene.own.add(name)
        taught = [action.name for action in (await scene.robot.actions()).taught]
        if name in taught:
            results[kind] = "taken"
            longest = max(longest, len(name.encode()))
            back = name
        else:
            others = [each for each in taught if name.startswith(each) and len(each) > 4]
            results[kind] = f"cut to {len(others[0].encode())} bytes" if others else "changed"
            back = others[0] if others else name
            scene.own.add(back)
        scene.saved = (scene.saved - {OWN}) | {back}
        if await scene.code_of(services_rename(scene, back, OWN)) == 0:
            scene.own -= {name, back}
            scene.saved = (scene.saved - {back}) | {OWN}
    scene.put("names", results=results, longest_bytes=longest, refused_bytes=refused_at or None)


async def services_rename(scene: Scene, old: str, new: str) -> None:
    """Rename by the services where there are any: they may take longer names than rote."""
    client = scene.tap.client
    if isinstance(client, ServicesClient):
        text = rpc.write_json({"pre_name": old, "new_name": new})
        await client.call(rpc.Call(rpc.ARM, rpc.ArmApi.RENAME_TAUGHT, text), seen=True)
    else:
        await scene.robot.rename(old, new)


async def missing(scene: Scene) -> None:
    """Ask to delete and rename what is not there."""
    deleted = await scene.code_of(scene.robot.delete(MISSING))
    scene.refusal(_DELETE, "deleted what is not there", int(Code.NO_SUCH_ACTION), deleted)
    renamed = await scene.code_of(services_rename(scene, MISSING, f"{MISSING}-2"))
    scene.refusal(_RENAME, "renamed what is not there", int(Code.NO_SUCH_ACTION), renamed)


async def lapse(scene: Scene) -> None:
    """Make the arms soft, say nothing more, and wait until they hold by themselves."""
    scene.own.add(LAPSE)
    begun_s = scene.now_s
    try:
        scene.soft = True  # also if only the answer is lost
        await _begin_silently(scene)
        asked_s = scene.now_s
        if await scene.until(lambda state: state.arms_soft, 3.0) is None:
            raise StepImpossibleError("the robot does not report that its arms got soft")
        scene.note("the arms are soft, and no keep-alive is sent")
        held_s = await scene.until(lambda state: not state.arms_soft, LAPSE_LIMIT_S)
    finally:
        scene.tap.hold_back = _all_out
        await to_the_end(hold(scene))  # who is impatient must not leave soft arms behind
    sent_s = scene.sent_at(_TEACH if scene.has_services else _FRAME_ENTER, begun_s) or asked_s
    lasted_s = None if held_s is None else rounded(held_s - sent_s, 2)
    scene.put("teaching", lapse_s=lasted_s)
    await scene.rest()
    stored = (await scene.robot.actions()).find(LAPSE) is not None
    if stored:
        scene.saved.add(LAPSE)
    scene.put("teaching", lapse_stored=stored)


def _all_out(_: Message) -> bool:
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


async def _begin_silently(scene: Scene) -> None:
    client = scene.tap.client
    if isinstance(client, ServicesClient):
        await client.call(rpc.start_teaching(LAPSE), seen=True)
        return
    assert isinstance(client, TeachingClient)
    scene.tap.hold_back = _is_keep_alive
    reply = await client.ask(m.EnterTeaching(client.latest))
    if isinstance(reply, m.Status) and reply.code:
        raise RefusedError(reply.code, *m.explain(reply.code))


async def hold(scene: Scene) -> None:
    """Make the arms hold, whatever the robot thinks of it; `scene.soft` says if it did not."""
    client = scene.tap.client
    with suppress(RoteError):
        if isinstance(client, ServicesClient):
            await client.call(rpc.STOP_TEACHING, seen=True)
        elif isinstance(client, TeachingClient):
            await client.ask(m.ExitTeaching())
        scene.soft = False
    state = scene.robot.state
    if state is not None and state.phase_told and not state.arms_soft:
        scene.soft = False  # it may refuse because they hold already


# ---- move ---------------------------------------------------------------------------------------


async def _own_action(scene: Scene) -> TaughtAction:
    found = (await scene.robot.actions()).find(OWN)
    if found is None:
        raise StepImpossibleError(f"{OWN} is not on the robot: teach it first (the step `teach`)")
    return found


async def play(scene: Scene) -> None:
    """Play the trial's own action."""
    listed_s = (await _own_action(scene)).duration_s
    from_s = scene.now_s
    try:
        report = await scene.robot.play(OWN)
    except NotBegunError:
        scene.put("playing", never_moved=True)
        raise
    await scene.rest()
    values = _played(scene, from_s)
    values |= {"completed": report.completed, "listed_s": round(listed_s, 2)}
    scene.put("playing", **values)
    _note_start(scene, from_s)


def _played(scene: Scene, from_s: float) -> dict[str, Any]:
    spans = scene.spans(from_s)
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
        values |= _motion(scene, begin, end)
    return values


def _motion(scene: Scene, begin_s: float, end_s: float) -> dict[str, Any]:
    rows = [
        (at_s, state)
        for at_s, state in scene.recorder.states
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


def _note_start(scene: Scene, from_s: float) -> None:
    answered = scene.answered_at(_PLAY if scene.has_services else _FRAME_PLAY, from_s)
    begins = [span[1] for span in scene.spans(from_s) if span[0] in ("approach", "playing")]
    if answered is not None and begins:
        starts = scene.measured.setdefault("playing", {}).setdefault("starts_after_s", [])
        starts.append(rounded(begins[0] - answered))


async def stop(scene: Scene) -> None:
    """Stop the trial's own action in the middle."""
    await _own_action(scene)
    from_s = scene.now_s
    await _begin_playing(scene)
    asked_s = scene.now_s
    await scene.robot.stop()
    answered_s = scene.now_s
    seen_s = await scene.until(lambda state: state.phase is not Phase.PLAYING, 5.0)
    await scene.rest()
    spans = [span for span in scene.spans(asked_s) if span[0] == "return"]
    scene.put(
        "playing",
        stop_answer_s=rounded(answered_s - asked_s),
        stop_seen_s=None if seen_s is None else rounded(seen_s - asked_s),
        stop_return_s=rounded(sum(end - begin for _, begin, end in spans)),
    )
    _note_start(scene, from_s)


async def _begin_playing(scene: Scene) -> None:
    """Begin to play, and return a moment after the arms move."""
    await scene.robot.start(OWN)
    begun = await scene.until(lambda state: state.playing, 5.0)
    if begun is None:
        await scene.robot.stop()
        raise StepImpossibleError("the robot does not report that it plays")
    await asyncio.sleep(0.8)


async def refused(scene: Scene) -> None:
    """Ask to play what is not there, and a second action while one plays."""
    client = scene.tap.client
    api = _PLAY if scene.has_services else _FRAME_PLAY
    if isinstance(client, ServicesClient):
        asking: Awaitable[object] = client.call(rpc.play_taught(MISSING), seen=True)
    else:
        asking = _asked(scene, m.PlayAction(action=250))
    code = await scene.code_of(asking)
    scene.refusal(api, "played what is not there", int(Code.NO_SUCH_ACTION), code)
    if code == 0:
        await scene.robot.stop()
    own = await _own_action(scene)
    await _begin_playing(scene)
    try:
        if isinstance(client, ServicesClient):
            again: Awaitable[object] = client.call(rpc.play_taught(OWN), seen=True)
        else:
            again = _asked(scene, m.PlayAction(action=own.position, name=OWN))
        code = await scene.code_of(again)
    finally:
        await scene.robot.stop()
    scene.refusal(api, "played while it plays", int(Code.BUSY), code)
    await scene.rest()


async def _asked(scene: Scene, command: m.Command) -> None:
    """Ask by the frames, and raise a refusal."""
    client = scene.tap.client
    assert isinstance(client, TeachingClient)
    reply = await client.ask(command)
    if isinstance(reply, m.Status) and reply.code:
        raise RefusedError(reply.code, *m.explain(reply.code))


async def preset(scene: Scene) -> None:
    """Let the robot do a factory action."""
    presets = (await scene.robot.actions()).presets
    chosen = next((each for each in presets if each.id in PRESETS), None)
    if chosen is None:
        raise StepImpossibleError("the robot lists neither preset 26 nor 27")
    from_s = scene.now_s
    api = f"{rpc.ARM}/{int(rpc.ArmApi.EXECUTE_PRESET)}"
    await scene.robot.perform(chosen.id)
    took_s = scene.now_s - from_s
    answered, asked = scene.answered_at(api, from_s), scene.sent_at(api, from_s)
    await scene.rest()
    spans = [span for span in scene.spans(from_s) if span[0] == "playing"]
    at_end = None
    if answered is not None and spans:
        at_end = answered >= spans[-1][2] - 0.5
    scene.put(
        "preset",
        id=chosen.id,
        seconds=rounded(took_s, 2),
        answered_after_s=None if answered is None or asked is None else rounded(answered - asked),
        answered_at_end=at_end,
    )


async def other_stop(scene: Scene) -> None:
    """Let a second client stop a playback."""
    await _own_action(scene)
    await _begin_playing(scene)
    try:
        async with scene.another() as other:
            asked_s = scene.now_s
            await other.stop()
            seen_s = await scene.until(lambda state: state.phase is not Phase.PLAYING, 5.0)
    finally:
        await scene.robot.stop()
    scene.put("playing", other_stop_seen_s=None if seen_s is None else rounded(seen_s - asked_s))
    await scene.rest()


async def clean(scene: Scene) -> list[str]:
    """Delete what the trial stored; return the names that remain on the robot."""
    with suppress(RoteError):
        taught = {action.name for action in (await scene.robot.actions()).taught}
        left = sorted(scene.own & taught)
        if "delete" not in scene.robot.abilities:
            return left
        for name in list(left):
            with suppress(RoteError):
                await scene.robot.delete(name)
                left.remove(name)
        return left
    return sorted(scene.saved)


G1_STEPS: dict[str, Callable[[Scene], Awaitable[None]]] = {
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
