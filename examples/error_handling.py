"""Every error says what is wrong and what to do next, and one class catches them all."""

import rote


def explain(error: rote.RoteError) -> None:
    print(f"{error.kind}: {error}")
    if error.remedy:
        print(f"  {error.remedy}")


with rote.sync.connect("sim://g1?store=:memory:") as robot:
    try:
        robot.play("nothing")
    except rote.RefusedError as error:  # the robot answered, and the answer was no
        explain(error)
        print("  the code is", rote.Code(error.code))

    try:
        robot.teach("a name that is far too long for a robot")
    except rote.BadRequestError as error:  # the call itself cannot be right; also a ValueError
        explain(error)

    try:
        robot.perform(27)
    except rote.UnsupportedError as error:  # another wire could
        explain(error)

for _ in range(2):
    try:
        with rote.sync.connect("udp://127.0.0.1:9", timeout=0.5):
            break
    except rote.LinkError as error:  # nobody answered, or the robot was lost: try again
        explain(error)

try:
    rote.load("no-such-file.mcap")
except rote.RoteError as error:  # anything that rote raises on purpose
    explain(error)
print("still running")
