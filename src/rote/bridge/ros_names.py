"""How ROS 2 names things on DDS: topics, services, and the prefixes that tell them apart."""

from rote.errors import BadRequestError

_TOPIC, _REQUEST, _REPLY = "rt", "rq", "rr"


def topic(name: str) -> str:
    """Return the DDS topic of a ROS 2 topic: `/joint_states` is `rt/joint_states`."""
    return _TOPIC + _checked(name)


def service(name: str) -> tuple[str, str]:
    """Return the DDS topics of a ROS 2 service: of its requests, and of its replies."""
    return f"{_REQUEST}{_checked(name)}Request", f"{_REPLY}{_checked(name)}Reply"


def _checked(name: str) -> str:
    """Return a name as ROS 2 allows it: from the root, of letters, digits and underscores."""
    parts = name.split("/")
    good = len(parts) > 1 and not parts[0] and all(_is_token(part) for part in parts[1:])
    if not good:
        raise BadRequestError(f"{name!r} is not a name of ROS 2", "Write it like /robot/stop.")
    return name


def _is_token(part: str) -> bool:
    plain = part.isascii() and part.replace("_", "a").isalnum()
    return bool(part) and plain and not part[0].isdigit()
