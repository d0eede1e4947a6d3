"""Everything rote raises on purpose.

    RoteError
    ├── BadRequestError          your call cannot be carried out as asked   (also a ValueError)
    ├── DecodeError              these bytes are not a valid frame
    │   ├── TruncatedError           they end too early
    │   ├── ChecksumError            the CRC does not match
    │   └── PayloadError             the frame is valid, its payload is not
    ├── ProtocolError            a valid message at the wrong moment
    │   ├── LocalProtocolError       this side was asked to send it
    │   └── RemoteProtocolError      the other side sent it
    ├── LinkError                the carrier failed; trying again may help  (also a ConnectionError)
    │   ├── NoAnswerError            no robot answered                      (also a TimeoutError)
    │   ├── PeerLostError            the robot answered before and is silent now
    │   ├── NotConfirmedError        a stop was sent, and the robot did not confirm it
    │   └── StageError               connecting failed, and at which stage
    │       ├── StageTimeoutError        nothing came in that stage's time  (also a NoAnswerError)
    │       └── BusyError                the robot serves another client
    ├── RefusedError             the robot refused a request
    │   └── CautionError             rote itself refuses; nothing was sent to the robot
    ├── UnsafeMotionError        a motion failed a safety check; never retry it unchanged
    │   └── WarnedMotionError        a check only warns: look at it, then play it by force
    ├── OtherBuildError          a motion of another build: it can be played by joint names
    ├── ImportedMotionError      an imported motion: a person has to agree first
    ├── ProtectionError          a protection tripped while the robot moved; it is damped now
    ├── TimeLimitError           a request was not carried out in time       (also a TimeoutError)
    │   ├── NotBegunError            the robot accepted a motion that did not begin
    │   └── NotSavedError            the robot accepted a recording and does not list it
    ├── NotApprovedError         an AI agent requested a motion that no person has approved
    ├── UnsupportedError         this robot or wire cannot do that
    ├── MissingExtraError        an optional package is not installed       (also an ImportError)
    └── StoreError               the simulated robot's store cannot be used
        └── StoreLockedError         another program has locked it; try again

Each carries `kind` (a word scripts can rely on), `remedy` (what to do next) and `exit_code`.
Wrong types raise TypeError, as everywhere else in Python.
"""

from typing import ClassVar

from rote.platform.distribution import how_to_get
from rote.text import Act, Text, seconds

__all__ = [
    "RoteError", "BadRequestError", "DecodeError", "TruncatedError", "ChecksumError",
    "PayloadError", "ProtocolError", "LocalProtocolError", "RemoteProtocolError", "LinkError",
    "NoAnswerError", "PeerLostError", "NotConfirmedError", "StageError", "StageTimeoutError",
    "BusyError",
    "RefusedError", "CautionError", "UnsafeMotionError", "WarnedMotionError", "OtherBuildError",
    "ImportedMotionError", "ProtectionError", "TimeLimitError", "NotApprovedError",
    "UnsupportedError", "MissingExtraError", "StoreError", "StoreLockedError",
]  # fmt: skip


class RoteError(Exception):
    """The root of the tree: catch this to catch everything rote raises on purpose."""

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    headline: str = ""
    """A warning to show before the message: that a stop failed, and what to use instead."""

    @property
    def remedy(self) -> str:
        """What to do next, in one sentence; empty if there is nothing to advise."""
        return ""

    @property
    def text(self) -> str:
        """The message: a `Text` if it contains facts that each user interface shows differently."""
        return str(self)

    def _note_remedy(self) -> None:
        """Add the remedy as a note, so that the traceback of an uncaught error shows it too."""
        if self.remedy:
            self.add_note(self.remedy)


class _ExplainedError(RoteError):
    """An error made of a message and a remedy."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        # An OSError such as `LinkError` would otherwise interpret its arguments as errno and text.
        self.args = (message, remedy)
        self.message = message
        self._remedy = remedy
        self._note_remedy()

    def __str__(self) -> str:
        return str(self.message)

    @property
    def text(self) -> str:
        """The message: a `Text` if it contains facts."""
        return self.message

    @property
    def remedy(self) -> str:
        """What to do next."""
        return self._remedy


class BadRequestError(_ExplainedError, ValueError):
    """The request cannot be carried out: a name too long, a negative duration, a bad URL."""

    kind = "bad-request"
    exit_code = 2


class DecodeError(_ExplainedError):
    """These bytes are not a valid frame."""

    kind = "decode"


class TruncatedError(DecodeError):
    """The bytes end before the frame does."""

    def __init__(self, needed: int, got: int, hint: str = "") -> None:
        super().__init__(f"the frame needs {needed} bytes and has {got}{hint}")
        self.args = (needed, got, hint)
        self.needed = needed
        self.got = got


class ChecksumError(DecodeError):
    """The CRC in the frame differs from the CRC of its bytes."""

    def __init__(self, stated: int, computed: int, hint: str = "") -> None:
        super().__init__(
            f"the checksum is {stated:08x} in the frame, but {computed:08x} for its bytes{hint}"
        )
        self.args = (stated, computed, hint)
        self.stated = stated
        self.computed = computed


class PayloadError(DecodeError):
    """The frame is valid, but its payload holds a value that is not allowed."""


class ProtocolError(_ExplainedError):
    """A valid message at the wrong moment."""

    kind = "protocol"


class LocalProtocolError(ProtocolError):
    """This side was asked to send something that may not be sent now."""


class RemoteProtocolError(ProtocolError):
    """The other side sent something that may not be sent now."""


class LinkError(_ExplainedError, ConnectionError):
    """The carrier failed; trying again may help."""

    kind = "link"
    exit_code = 3


class NoAnswerError(LinkError, TimeoutError):
    """No robot answered."""

    kind = "no-answer"


class PeerLostError(LinkError):
    """The robot answered before and is silent now; its state is unknown."""

    kind = "peer-lost"


class NotConfirmedError(LinkError):
    """A stop was sent to a connected robot, and the robot did not confirm it."""

    kind = "not-confirmed"


class StageError(LinkError):
    """Connecting failed at `stage`: discover, signal, key, ICE, DTLS, channel or validation."""

    kind = "stage"

    def __init__(self, stage: str, seen: str, remedy: str = "") -> None:
        super().__init__(f"connecting failed at the stage {stage!r}: {seen}", remedy)
        self.args = (stage, seen, remedy)
        self.stage = stage
        self.seen = seen


class StageTimeoutError(StageError, NoAnswerError):
    """Nothing arrived within the time limit of a stage."""

    kind = "no-answer"


class BusyError(StageError):
    """The robot is connected to another client; it accepts one at a time."""

    kind = "busy"


class RefusedError(RoteError):
    """The robot refused a request."""

    kind = "refused"
    exit_code = 4

    def __init__(self, code: int, message: str, remedy: str = "") -> None:
        super().__init__(code, message, remedy)
        self.code = code
        self.message = message
        self._remedy = remedy
        self._note_remedy()

    def __str__(self) -> str:
        return f"the robot refused: {self.message} (code {self.code:d})"

    @property
    def remedy(self) -> str:
        """What to do next."""
        return self._remedy


class CautionError(RefusedError):
    """rote refuses as a precaution without asking the robot. The remedy says how to override it."""

    kind = "caution"

    def __init__(self, message: str, remedy: str = "", code: int = 0) -> None:
        """`code` is what the robot would have answered, if that is known."""
        super().__init__(code, message, remedy)
        self.args = (message, remedy, code)

    def __str__(self) -> str:
        code = f" (code {self.code:d})" if self.code else ""
        return f"rote refuses: {self.message}{code}"


class UnsafeMotionError(RoteError):
    """A motion failed a safety check. The joint, the time and the number are fields."""

    kind = "unsafe-motion"
    exit_code = 5

    def __init__(self, joint: str, time_s: float, reason: str, remedy: str = "") -> None:
        super().__init__(joint, time_s, reason, remedy)
        self.joint = joint
        self.time_s = time_s
        self.reason = reason
        self._remedy = remedy

    def __str__(self) -> str:
        return str(self.text)

    @property
    def text(self) -> Text:
        """The message with its facts."""
        # Most reasons begin with the joint: do not name it twice.
        joint = "" if self.reason.startswith(self.joint) else f": {self.joint}"
        return Text(
            "unsafe motion{joint} at {when}: {reason}",
            joint=joint,
            when=seconds(self.time_s),
            reason=self.reason,
        )

    @property
    def remedy(self) -> str:
        """What to do next."""
        return self._remedy or (
            "Teach it again within the joint's limits; if it is only too fast, play it slower."
        )


class WarnedMotionError(UnsafeMotionError):
    """A check warns about a motion. A person may decide to play it anyway."""

    kind = "warned-motion"


class OtherBuildError(RoteError):
    """A motion was recorded on another build of the robot. It can be played by joint names."""

    kind = "other-build"
    exit_code = 5

    def __init__(
        self, made_on: str, robot: str, left_out: tuple[str, ...], missing: tuple[str, ...]
    ) -> None:
        super().__init__(made_on, robot, left_out, missing)
        self.made_on = made_on
        """The build it was recorded on."""
        self.robot = robot
        """The build it should be played on."""
        self.left_out = left_out
        """Joints of the motion that this robot does not have."""
        self.missing = missing
        """Joints that this robot plays and that the motion does not have: they stay at rest."""
        self._note_remedy()

    def __str__(self) -> str:
        message = f"this motion was made on {self.made_on}, but the robot is {self.robot}"
        if self.left_out:
            message += f"; these joints would be left out: {', '.join(self.left_out)}"
        if self.missing:
            message += f"; these joints would stay at rest: {', '.join(self.missing)}"
        return message

    @property
    def remedy(self) -> str:
        """What to do next."""
        return Text(
            "Play it by joint names, if the motion does not need these joints: {map}.",
            map=Act.MAP_JOINTS,
        )


class ImportedMotionError(RoteError):
    """An imported motion that no person has agreed to play on a real robot."""

    kind = "imported-motion"
    exit_code = 5

    def __init__(self, file: str, made_as: str, licence: str = "") -> None:
        super().__init__(file, made_as, licence)
        self.file = file
        """The file it came from."""
        self.made_as = made_as
        """The format as which the file was read, such as `unitree-csv`."""
        self.licence = licence
        """Its terms of use; empty if they are not known."""
        self._note_remedy()

    def __str__(self) -> str:
        terms = self.licence or "terms unknown"
        return (
            f"this motion was not taught here but imported from {self.file} "
            f"({self.made_as}, {terms}), and no person has agreed to play it on a real robot"
        )

    @property
    def remedy(self) -> str:
        """What to do next."""
        return Text(
            "Look at it on the simulated robot, then play it at half speed first, with a hand on "
            "the stop: {imported}.",
            imported=Act.PLAY_IMPORTED,
        )


class ProtectionError(RoteError):
    """A protection tripped while the robot moved. It is raised after the robot was made safe."""

    kind = "protection"
    exit_code = 7

    def __init__(self, protection: str, reason: str, remedy: str = "") -> None:
        super().__init__(protection, reason, remedy)
        self.protection = protection
        """Which protection it was: position, power, velocity, torque, temperature, tilt, stale,
        clock, control, command or remote.
        """
        self.reason = reason
        self._remedy = remedy
        self._note_remedy()

    def __str__(self) -> str:
        return f"the {self.protection} protection tripped: {self.reason}"

    @property
    def remedy(self) -> str:
        """What to do next."""
        return self._remedy


class TimeLimitError(_ExplainedError, TimeoutError):
    """The request was not carried out in time; a stop was sent."""

    kind = "time-limit"
    exit_code = 8


class NotBegunError(TimeLimitError):
    """The robot accepted a motion that did not begin. A stop was sent."""

    kind = "not-begun"


class NotSavedError(TimeLimitError):
    """The robot accepted a recording, and does not list it. The take on this computer is kept."""

    kind = "not-saved"


class NotApprovedError(_ExplainedError):
    """An AI agent requested a motion that no person has approved; nothing has moved."""

    kind = "not-approved"
    exit_code = 4


class UnsupportedError(RoteError):
    """This robot or wire cannot do that; the error names the wires that can, if any."""

    kind = "unsupported"
    exit_code = 6

    def __init__(
        self, what: str, wire: str, wires_that_can: tuple[str, ...] = (), remedy: str = ""
    ) -> None:
        super().__init__(what, wire, wires_that_can, remedy)
        self.what = what
        self.wire = wire
        self.wires_that_can = wires_that_can
        self._remedy = remedy
        self._note_remedy()

    def __str__(self) -> str:
        return f"{self.wire} cannot {self.what}"

    @property
    def remedy(self) -> str:
        """Which wire to use instead, or what else to do."""
        if self._remedy:
            return self._remedy
        if not self.wires_that_can:
            return "No wire of rote can do this yet."
        return f"Connect by {' or '.join(self.wires_that_can)} instead."


class MissingExtraError(RoteError, ImportError):
    """An optional package is not installed."""

    kind = "missing-extra"

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(what, extra)
        self.what = what
        self.extra = extra
        self._note_remedy()

    def __str__(self) -> str:
        return f"{self.what} needs an optional package"

    @property
    def remedy(self) -> str:
        """The command that installs it, or why it cannot be installed here."""
        return how_to_get(self.extra)


class StoreError(_ExplainedError):
    """The simulated robot's store cannot be used."""

    kind = "store"


class StoreLockedError(StoreError):
    """Another program has locked the simulated robot's store."""
