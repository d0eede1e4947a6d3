"""Checks a show: compiles and checks every role's score before any robot moves."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from rote.errors import BadRequestError
from rote.findings import Finding, FindingKind, Severity
from rote.motion.check.rules import check as check_motion
from rote.motion.track import Track
from rote.stage.show.file import Cast, Cue, CueKind, Section, Show
from rote.stage.show.score import ClipError, Score, TrackSource, compile_role, hold_at_end

LIGHT_APART_S = 0.2
"""Minimum time between two colours of a G1's light, in seconds."""
_MAX_PLACES = 6
"""Maximum number of places that are listed with one finding."""

SoundSource = Callable[[str], float]
"""Returns the duration of a sound in seconds, or raises `BadRequestError`."""


@dataclass(frozen=True, slots=True)
class ShowFinding:
    """A finding about a show, and its location."""

    finding: Finding
    section: str = ""
    """"" if it concerns the whole show."""
    role: str = ""
    time_s: float | None = None
    """From the section's start."""

    @property
    def location(self) -> str:
        """The location as text."""
        parts = [f"section {self.section!r}"] if self.section else []
        parts += [f"role {self.role!r}"] if self.role else []
        parts += [] if self.time_s is None else [f"at {self.time_s:.2f} s"]
        return ", ".join(parts) or "the show"

    def as_json(self) -> dict[str, Any]:
        """Return the finding as JSON data."""
        location = {"section": self.section or None, "role": self.role or None}
        return {**self.finding.as_json(), **location, "time_s": self.time_s}


class RepeatedFinding(NamedTuple):
    """A finding of a take, and every place of the show in which the take is used."""

    finding: Finding
    places: tuple[ShowFinding, ...]

    @property
    def location(self) -> str:
        """The locations as text."""
        named = [each.location for each in self.places[:_MAX_PLACES]]
        if more := len(self.places) - len(named):
            named.append(f"and {more} more")
        return "; ".join(named)


@dataclass(frozen=True, slots=True, eq=False)
class CheckedShow:
    """A show, every role's score, and the findings."""

    show: Show
    scores: dict[tuple[str, str], Score]
    """By section and role; the conductor's own cues have the role ""."""
    findings: tuple[ShowFinding, ...]

    @property
    def ok(self) -> bool:
        """Whether it has no errors; there may be warnings."""
        return all(each.finding.severity is not Severity.ERROR for each in self.findings)

    @property
    def repeated_findings(self) -> tuple[RepeatedFinding, ...]:
        """The findings, each once: roles that use the same take have the same findings."""
        places: dict[tuple[str, ...], list[ShowFinding]] = {}
        for each in self.findings:
            found = each.finding
            key = (found.severity, found.kind, str(found.message), str(found.remedy))
            places.setdefault(key, []).append(each)
        return tuple(RepeatedFinding(each[0].finding, tuple(each)) for each in places.values())

    @property
    def warnings(self) -> tuple[RepeatedFinding, ...]:
        """The warnings, each once."""
        found = self.repeated_findings
        return tuple(each for each in found if each.finding.severity is Severity.WARNING)

    def as_json(self) -> dict[str, Any]:
        """Return what `rote show check --json` prints: each finding at each of its places."""
        return {"ok": self.ok, "findings": [each.as_json() for each in self.findings]}

    def require(self) -> None:
        """Raise `BadRequestError` that names the first error, if there is one."""
        for each in self.findings:
            if each.finding.severity is Severity.ERROR:
                raise BadRequestError(
                    f"{each.location}: {each.finding.message}", str(each.finding.remedy)
                )


def check_show(
    show: Show,
    takes: TrackSource,
    sounds: SoundSource,
    *,
    cast: Cast | None = None,
    contact: bool = True,
    progress: Callable[[str, str], None] = lambda _section, _role: None,
) -> CheckedShow:
    """Compile and check every role of every section.

    `progress` is called with the section and role that is checked next.
    """
    found: list[ShowFinding] = []
    scores: dict[tuple[str, str], Score] = {}
    for section in show.sections:
        compiled: dict[str, Score] = {}
        for role in ("", *(role.name for role in show.roles)):
            progress(section.name, role)
            try:
                compiled[role] = (
                    compile_role(show, section, role, takes)
                    if role
                    else _compile_conductor(section)
                )
            except ClipError as error:
                kind = FindingKind.OVERLAP if error.overlap else FindingKind.FILE
                finding = Finding(Severity.ERROR, str(error), str(error.remedy), kind=kind)
                found.append(ShowFinding(finding, section.name, role, error.time_s))
        if section.hold:
            compiled = hold_at_end(compiled)
            found += _check_hold(compiled)
        for role, score in compiled.items():
            if not score.empty:
                scores[section.name, role] = score
                found += _check_score(score, sounds, contact=contact)
    found += _check_cast(show, cast)
    found += _note_unchecked_contact(show)
    order = list(Severity)
    found.sort(key=lambda each: order.index(each.finding.severity))
    return CheckedShow(show, scores, tuple(found))


def _compile_conductor(section: Section) -> Score:
    """Return the score of the conductor's own computer: its cues."""
    cues = sorted((cue for cue in section.cues if not cue.role), key=lambda cue: cue.at_s)
    return Score(section.name, "", cues=tuple(cues))


def _check_hold(scores: Mapping[str, Score]) -> Iterator[ShowFinding]:
    """Find stored actions in a section with `hold`: their last poses cannot be held."""
    for score in scores.values():
        for action in score.actions[:1]:
            message = f"the robot's own action {action.name!r} cannot be held at its end"
            remedy = "Use a take, or leave out the section's 'hold'."
            yield _make_finding(
                score, Severity.ERROR, FindingKind.STORE, message, remedy, action.at_s
            )


def _check_score(score: Score, sounds: SoundSource, *, contact: bool) -> Iterator[ShowFinding]:
    if score.motion is not None:
        yield from _check_motion(score, score.motion.track, score.motion.at_s, contact=contact)
    for action in score.actions:
        note = f"the robot's own action {action.name!r} was not checked"
        yield _make_finding(
            score, Severity.NOTE, FindingKind.STORE, note, "Rehearse it.", action.at_s
        )
    light_times_s = [cue.at_s for cue in score.cues if cue.kind is CueKind.LIGHT]
    for before_s, after_s in pairwise(light_times_s):
        if after_s - before_s < LIGHT_APART_S - 1e-9:
            message = (
                f"two colours are {1000 * (after_s - before_s):.0f} ms apart; "
                f"a robot's light needs {1000 * LIGHT_APART_S:.0f} ms"
            )
            remedy = f"Move it to {before_s + LIGHT_APART_S:.2f} s."
            yield _make_finding(score, Severity.ERROR, FindingKind.CUE, message, remedy, after_s)
    for cue in score.cues:
        yield from _check_cue(score, cue, sounds)
    yield from _check_overlapping_sounds(score, sounds)


def _check_motion(
    score: Score, track: Track, at_s: float, *, contact: bool
) -> Iterator[ShowFinding]:
    for finding in check_motion(track, contact=contact).findings:
        time_s = None if finding.time_s is None else at_s + finding.time_s
        yield ShowFinding(finding, score.section, score.role, time_s)


def _check_cue(score: Score, cue: Cue, sounds: SoundSource) -> Iterator[ShowFinding]:
    if cue.kind is CueKind.SOUND:
        try:
            sounds(cue.value)
        except BadRequestError as error:
            yield _make_finding(
                score, Severity.ERROR, FindingKind.FILE, str(error), str(error.remedy), cue.at_s
            )
    if cue.kind is CueKind.SAY and (other := _guess_other_language(cue)):
        message = f"{cue.value!r:.60} does not look like {cue.language!r}"
        remedy = f"Give it the language {other!r}."
        yield _make_finding(score, Severity.WARNING, FindingKind.CUE, message, remedy, cue.at_s)


def _check_overlapping_sounds(score: Score, sounds: SoundSource) -> Iterator[ShowFinding]:
    """Find overlapping sounds of one robot: a new sound cuts off the previous one."""
    if not score.role:
        return
    for before, after in pairwise(cue for cue in score.cues if cue.kind is CueKind.SOUND):
        try:
            end_s = before.at_s + sounds(before.value)
        except BadRequestError:
            continue  # reported by `_check_cue`
        if end_s > after.at_s + 1e-3:
            message = f"{after.value!r} cuts off {before.value!r} by {end_s - after.at_s:.1f} s"
            remedy = f"Move it to {end_s:.2f} s: a robot plays one sound at a time."
            yield _make_finding(
                score, Severity.WARNING, FindingKind.CUE, message, remedy, after.at_s
            )


def _guess_other_language(cue: Cue) -> str:
    """Return the language that the text looks like; "" if it is the cue's language."""
    is_chinese = any("\u4e00" <= letter <= "\u9fff" for letter in cue.value)
    guessed = "zh" if is_chinese else "en"
    return guessed if guessed != cue.language else ""


def _check_cast(show: Show, cast: Cast | None) -> Iterator[ShowFinding]:
    if cast is None:
        return
    for role in show.roles:
        if role.name not in cast.robots:
            yield ShowFinding(
                Finding(
                    Severity.ERROR,
                    "no robot plays this role",
                    "Add it to the cast.",
                    kind=FindingKind.CAST,
                ),
                role=role.name,
            )
    for name in cast.robots:
        if name not in {role.name for role in show.roles}:
            message = f"the cast has a role {name!r} that the show does not have"
            finding = Finding(Severity.WARNING, message, "Remove it.", kind=FindingKind.CAST)
            yield ShowFinding(finding)


def _note_unchecked_contact(show: Show) -> Iterable[ShowFinding]:
    if len(show.roles) < 2:
        return ()
    message = "contact between robots was not checked"
    remedy = "Place them so far apart that their arms cannot meet."
    return (ShowFinding(Finding(Severity.NOTE, message, remedy, kind=FindingKind.COLLISION)),)


def _make_finding(
    score: Score, severity: Severity, kind: FindingKind, message: str, remedy: str, at_s: float
) -> ShowFinding:
    finding = Finding(severity, message, remedy, kind=kind, time_s=at_s)
    return ShowFinding(finding, score.section, score.role, at_s)
