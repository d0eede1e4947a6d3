"""The DDS topics of ROS 2's topics and services, with their prefixes."""

from rote.errors import BadRequestError

_TOPIC, _REQUEST, _REPLY = "rt", "rq", "rr"


def topic(name: str) -> str:
    """Return the DDS topic of a ROS 2 topic: `/joint_states` is `rt/joint_states`."""
    return _TOPIC + _check_name(name)


def service(name: str) -> tuple[str, str]:
    """Return the DDS topics of a ROS 2 service: of its requests, and of its replies."""
    return f"{_REQUEST}{_check_name(name)}Request", f"{_REPLY}{_check_name(name)}Reply"


def _check_name(name: str) -> str:
    """Return the name, or raise `BadRequestError` if it is not a valid absolute name of ROS 2."""
    parts = name.split("/")
    good = len(parts) > 1 and not parts[0] and all(_is_token(part) for part in parts[1:])
    if not good:
        raise BadRequestError(f"{name!r} is not a name of ROS 2", "Write it like /robot/stop.")
    return name


def _is_token(part: str) -> bool:
    plain = part.isascii() and part.replace("_", "a").isalnum()
    return bool(part) and plain and not part[0].isdigit()
