"""Errors are part of the interface: their tree, their words, their codes, and that they travel."""

import copy
import inspect
import pickle
import re

import pytest

from rote import errors, messages
from rote.errors import (
    BadRequestError,
    BusyError,
    CautionError,
    ChecksumError,
    DecodeError,
    ImportedMotionError,
    LinkError,
    LocalProtocolError,
    MissingExtraError,
    NoAnswerError,
    NotApprovedError,
    NotBegunError,
    NotConfirmedError,
    NotSavedError,
    OtherBuildError,
    PayloadError,
    PeerLostError,
    ProtectionError,
    ProtocolError,
    RefusedError,
    RemoteProtocolError,
    RoteError,
    StageError,
    StageTimeoutError,
    StoreError,
    StoreLockedError,
    TimeLimitError,
    TruncatedError,
    UnsafeMotionError,
    UnsupportedError,
    WarnedMotionError,
)

EXAMPLES: list[tuple[RoteError, dict[str, object]]] = [
    (
        ProtectionError("tilt", "1.2 rad", "Set it up."),
        {"protection": "tilt", "reason": "1.2 rad"},
    ),
    (
        WarnedMotionError("left elbow", 1.5, "hands meet", "Look at it."),
        {"joint": "left elbow", "time_s": 1.5},
    ),
    (TimeLimitError("too late", "Allow more."), {"message": "too late"}),
    (RoteError("something"), {}),
    (BadRequestError("too long", "Shorten it."), {"message": "too long"}),
    (DecodeError("no frame", "Look again."), {"message": "no frame"}),
    (TruncatedError(63, 60, "; a hint"), {"needed": 63, "got": 60}),
    (TruncatedError(19, 0), {"needed": 19, "got": 0}),
    (ChecksumError(0xDEADBEEF, 0x1), {"stated": 0xDEADBEEF, "computed": 0x1}),
    (ChecksumError(0xDEADBEEF, 0x1, "; a hint"), {"stated": 0xDEADBEEF, "computed": 0x1}),
    (PayloadError("a bad name"), {"message": "a bad name"}),
    (ProtocolError("not now", "Wait."), {"message": "not now"}),
    (LocalProtocolError("not yet open"), {"message": "not yet open"}),
    (RemoteProtocolError("it said too much", "Update it."), {"message": "it said too much"}),
    (LinkError("no route", "Plug it in."), {"message": "no route"}),
    (NoAnswerError("nobody there", "Switch it on."), {"message": "nobody there"}),
    (NotConfirmedError("no answer", "Use the remote."), {"message": "no answer"}),
    (PeerLostError("it fell silent", "Look at it."), {"message": "it fell silent"}),
    (StageError("DTLS", "no handshake", "Restart it."), {"stage": "DTLS", "seen": "no handshake"}),
    (StageTimeoutError("ICE", "no way", "Open the firewall."), {"stage": "ICE"}),
    (BusyError("signal", "it talks to the app", "Close the app."), {"stage": "signal"}),
    (CautionError("unknown machine", "Name it."), {"code": 0, "message": "unknown machine"}),
    (CautionError("all places are taken", "Delete one.", 7411), {"code": 7411}),
    (NotBegunError("it did not move", "Look at it."), {"message": "it did not move"}),
    (NotApprovedError("nobody said yes", "Ask."), {"message": "nobody said yes"}),
    (NotSavedError("it is not listed", "Teach again."), {"message": "it is not listed"}),
    (RefusedError(7404, "not standing", "Stand."), {"code": 7404, "message": "not standing"}),
    (
        UnsafeMotionError("left_elbow", 1.25, "9.1 rad/s"),
        {"joint": "left_elbow", "time_s": 1.25, "reason": "9.1 rad/s"},
    ),
    (UnsafeMotionError("waist", 0.0, "tight", "Give room."), {"joint": "waist"}),
    (
        UnsupportedError("delete an action", "udp", ("memory", "webrtc")),
        {"what": "delete an action", "wire": "udp", "wires_that_can": ("memory", "webrtc")},
    ),
    (MissingExtraError("drawing", "plot"), {"what": "drawing", "extra": "plot"}),
    (
        OtherBuildError("g1-29", "g1-23", ("left_wrist_yaw_joint",), ()),
        {"made_on": "g1-29", "robot": "g1-23", "left_out": ("left_wrist_yaw_joint",)},
    ),
    (ImportedMotionError("dance.pkl", "gmr", "CC BY 4.0"), {"file": "dance.pkl", "made_as": "gmr"}),
    (StoreError("it is locked", "Stop the other one."), {"message": "it is locked"}),
    (StoreLockedError("it is locked", "Stop the other one."), {"message": "it is locked"}),
]

EXIT_CODES: dict[type[RoteError], int] = {
    ProtectionError: 7,
    TimeLimitError: 8,
    NotApprovedError: 4,
    NotBegunError: 8,
    NotSavedError: 8,
    WarnedMotionError: 5,
    RoteError: 1,
    BadRequestError: 2,
    DecodeError: 1,
    TruncatedError: 1,
    ChecksumError: 1,
    PayloadError: 1,
    ProtocolError: 1,
    LocalProtocolError: 1,
    RemoteProtocolError: 1,
    LinkError: 3,
    NoAnswerError: 3,
    PeerLostError: 3,
    NotConfirmedError: 3,
    StageError: 3,
    StageTimeoutError: 3,
    BusyError: 3,
    RefusedError: 4,
    CautionError: 4,
    UnsafeMotionError: 5,
    OtherBuildError: 5,
    ImportedMotionError: 5,
    UnsupportedError: 6,
    MissingExtraError: 1,
    StoreError: 1,
    StoreLockedError: 1,
}

PUBLIC = [
    value
    for name, value in inspect.getmembers(errors, inspect.isclass)
    if issubclass(value, RoteError) and not name.startswith("_")
]
AS_IDS = [f"{type(error).__name__}-{index}" for index, (error, _) in enumerate(EXAMPLES)]


def facts(error: RoteError) -> tuple[object, ...]:
    return type(error), str(error), error.kind, error.exit_code, error.remedy, error.args


@pytest.mark.parametrize(("error", "fields"), EXAMPLES, ids=AS_IDS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_pickling_with_all_its_facts(
    error: RoteError, fields: dict[str, object], protocol: int
) -> None:
    again = pickle.loads(pickle.dumps(error, protocol))
    assert facts(again) == facts(error)
    for name, value in fields.items():
        assert getattr(again, name) == getattr(error, name) == value


@pytest.mark.parametrize(("error", "fields"), EXAMPLES, ids=AS_IDS)
def test_a_copied_error_says_the_same(error: RoteError, fields: dict[str, object]) -> None:
    assert facts(copy.copy(error)) == facts(error)
    assert all(getattr(copy.deepcopy(error), name) == value for name, value in fields.items())


def test_every_public_error_has_an_example_here() -> None:
    assert {type(error) for error, _ in EXAMPLES} == set(PUBLIC)


def test_the_tree_in_the_docstring_is_the_real_tree() -> None:
    drawn: dict[str, str | None] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"^    ([│├└─ ]*)(\w+Error)\b", line):
            depth = len(found[1]) // 4
            above = [*above[:depth], found[2]]
            drawn[found[2]] = above[depth - 1] if depth else None
    real = {}
    for error in PUBLIC:
        parents = [parent.__name__ for parent in error.__mro__[1:] if parent in PUBLIC]
        real[error.__name__] = parents[0] if parents else None
    assert drawn == real


def test_the_docstring_names_the_builtin_that_an_error_also_is() -> None:
    said = dict(re.findall(r"(\w+Error) .*\(also an? (\w+)\)", errors.__doc__ or ""))
    assert said == {
        "BadRequestError": "ValueError",
        "LinkError": "ConnectionError",
        "NoAnswerError": "TimeoutError",
        "TimeLimitError": "TimeoutError",
        "StageTimeoutError": "NoAnswerError",
        "MissingExtraError": "ImportError",
    }


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (BadRequestError, ValueError),
        (LinkError, ConnectionError),
        (PeerLostError, ConnectionError),
        (NoAnswerError, TimeoutError),
        (TimeLimitError, TimeoutError),
        (StageTimeoutError, NoAnswerError),
        (MissingExtraError, ImportError),
    ],
)
def test_ordinary_handlers_catch_the_errors_that_have_a_builtin(
    error: type[RoteError], builtin: type[Exception]
) -> None:
    assert issubclass(error, builtin)


@pytest.mark.parametrize("error", PUBLIC)
def test_an_exit_code_says_what_to_do(error: type[RoteError]) -> None:
    assert error.exit_code == EXIT_CODES[error]


@pytest.mark.parametrize("error", PUBLIC)
def test_a_kind_is_one_word_for_scripts(error: type[RoteError]) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", error.kind)


def test_errors_that_call_for_different_acts_have_different_kinds() -> None:
    acts: list[type[RoteError]] = [
        BadRequestError,
        DecodeError,
        ProtocolError,
        LinkError,
        NoAnswerError,
        NotApprovedError,
        NotBegunError,
        NotSavedError,
        PeerLostError,
        RefusedError,
        UnsafeMotionError,
        UnsupportedError,
        MissingExtraError,
        StoreError,
    ]
    assert len({error.kind for error in acts}) == len(acts)


def test_a_truncated_frame_says_how_much_is_missing() -> None:
    assert str(TruncatedError(63, 60)) == "the frame needs 63 bytes and has 60"
    assert str(TruncatedError(63, 60, "; why")).endswith("has 60; why")


def test_a_checksum_error_shows_both_sums_and_the_hint_of_its_protocol() -> None:
    words = str(ChecksumError(0x0000ABCD, 0x12345678))
    assert "0000abcd" in words
    assert "12345678" in words
    assert "DTLS" not in words  # not every checksum is that of a teaching frame
    assert str(ChecksumError(1, 2, "; why")).endswith("; why")


def test_an_unsafe_motion_names_the_joint_the_moment_and_the_number() -> None:
    error = UnsafeMotionError("left_elbow", 1.256, "9.1 rad/s, limit 8.0")
    assert str(error) == "unsafe motion: left_elbow at 1.26 s: 9.1 rad/s, limit 8.0"
    named = UnsafeMotionError("left_elbow", 1.256, "left_elbow moves at 9.1 rad/s")
    assert str(named) == "unsafe motion at 1.26 s: left_elbow moves at 9.1 rad/s"
    assert "slower" in error.remedy


def test_an_unsupported_request_names_the_wires_that_can() -> None:
    error = UnsupportedError("delete an action", "udp", ("memory", "webrtc"))
    assert str(error) == "udp cannot delete an action"
    assert error.remedy == "Connect by memory or webrtc instead."


def test_an_unsupported_request_that_no_wire_can_do_says_so() -> None:
    assert "No wire" in UnsupportedError("fly", "udp").remedy


def test_a_missing_extra_gives_the_command_that_installs_it() -> None:
    error = MissingExtraError("drawing", "plot")
    assert str(error) == "drawing needs an optional package"
    assert error.remedy == "Run: pip install 'rote-robot[plot]'"


@pytest.mark.parametrize("code", list(messages.Code))
def test_every_code_a_robot_answers_has_words_and_a_remedy_unless_it_is_ok(
    code: messages.Code,
) -> None:
    assert code in messages.CODE_TEXTS
    words, remedy = messages.explain(code)
    error = RefusedError(code, words, remedy)
    assert words in str(error)
    assert str(int(code)) in str(error)
    assert bool(error.remedy) == (code is not messages.Code.OK)


def test_an_unknown_code_still_has_words_and_a_remedy() -> None:
    words, remedy = messages.explain(4711)
    assert words
    assert remedy
    assert (words, remedy) not in messages.CODE_TEXTS.values()


def test_a_link_error_does_not_pass_its_words_off_as_an_errno() -> None:
    assert NoAnswerError("nobody there", "Switch it on.").errno is None
