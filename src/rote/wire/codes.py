"""The services of a G1 and what their codes mean, in words and with what to do about them."""

ARM, SPORT = "arm", "sport"
MOTION_SWITCHER, ROBOT_STATE = "motion_switcher", "robot_state"

NO_STATUS = -(2**31)
"""Stands for the code of a response that does not say whether it was done."""

# What a code means and what to do about it, by service ("" is any) and code: numbers clash, and
# 7001 to 7009 are codes of one service and api ids of another.
CODES: dict[tuple[str, int], tuple[str, str]] = {
    ("", 0): ("done", ""),
    ("", 100): ("it could not accept the values sent", "Check them against the service's limits."),
    ("", 3001): ("something unknown went wrong", "Try again; look at the robot's own messages."),
    ("", 3102): ("nobody took the request", "See that the service runs and is not in debug mode."),
    ("", 3103): ("the client does not know this api", "Use a client as new as the robot."),
    ("", 3104): (
        "the service did not answer in time",
        "Look at what the robot does, then ask again.",
    ),
    ("", 3105): ("the answer was to another question", "Ask again."),
    ("", 3106): ("the answer could not be read", "Compare the versions of both ends."),
    ("", 3107): ("the client's lease is not valid", "Take the lease anew."),
    ("", 3201): ("the service could not send its answer", "Look at what the robot does."),
    ("", 3202): ("the service failed inside", "Try again; restart the robot if it stays so."),
    ("", 3203): (
        "the service does not know this api",
        "The robot's software may be older: update it.",
    ),
    ("", 3204): ("it could not read or accept the values sent", "Check names and numbers."),
    ("", 3205): ("another client holds the lease", "Let the other client end first."),
    ("", 3206): ("there is no such lease", "Take the lease anew."),
    ("", 3207): ("there is a lease already", "Let the other client end first."),
    (SPORT, 4101): ("the path sent is not valid", "Check its points."),
    (SPORT, 4201): ("the motion took too long", "Try again."),
    (SPORT, 4205): (
        "the motion controller is not initialised",
        "Wait until the robot has started.",
    ),
    (SPORT, 7301): (
        "the controller's state is not available",
        "Make the robot stand first: L2+UP.",
    ),
    (SPORT, 7302): ("there is no such controller state", "Ask the robot which it has."),
    (SPORT, 7303): ("there is no such task", "Choose another."),
    (SPORT, 7304): ("the controller may not return to that state", "Damp it first: L2+B."),
    (ROBOT_STATE, 5201): ("the service could not be switched", "Ask for the list of services."),
    (ROBOT_STATE, 5202): ("that service is protected", "It cannot be switched off."),
    (MOTION_SWITCHER, 7001): ("it could not accept the values sent", "Check them."),
    (MOTION_SWITCHER, 7002): ("it is switching already", "Wait a moment and ask again."),
    (MOTION_SWITCHER, 7003): ("its event failed", "Ask again."),
    (MOTION_SWITCHER, 7004): ("there is no controller of that name", "On a G1 it is: ai."),
    (MOTION_SWITCHER, 7005): ("its command failed", "Ask again."),
    (MOTION_SWITCHER, 7006): ("the check failed", "Ask again."),
    (MOTION_SWITCHER, 7007): ("the controller could not be selected", "Damp the robot, ask again."),
    (MOTION_SWITCHER, 7008): ("the controller could not be released", "Damp the robot, ask again."),
    (MOTION_SWITCHER, 7009): ("customising failed", "Ask again."),
    (ARM, 7399): ("the arm service failed", "Try again."),
    (ARM, 7400): ("its arms are in use by another motion", "Wait until it has ended, or stop it."),
    (ARM, 7401): ("its arms hold a pose", "Release them (preset 99), or repeat the same preset."),
    (ARM, 7402): ("there is no such action", "List what there is; it differs from robot to robot."),
    (ARM, 7403): ("the action's file cannot be read", "Teach it again, or delete it."),
    (ARM, 7404): (
        "its controller's state does not allow it",
        "Make it stand balanced: L2+UP, R1+X.",
    ),
    (ARM, 7405): ("an action of that name already exists", "Choose another name."),
    (ARM, 7406): ("its battery is low", "Charge it."),
    (ARM, 7407): ("a motor reports an error", "Look at the robot's faults; let it cool."),
}


def explain(service: str, code: int) -> tuple[str, str]:
    """Return what a service's code means and what to do about it."""
    if code == NO_STATUS:
        return "its answer does not say whether it was done", "Look at what the robot does."
    unknown = ("for a reason it does not explain", "Look the code up in the docs.")
    return CODES.get((service, code)) or CODES.get(("", code), unknown)
