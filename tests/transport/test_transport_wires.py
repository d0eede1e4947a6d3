"""The table of wires: what each can do, and the advice where one cannot."""

from rote.transport.wires import WIRES, unsupported, wires_with


def test_no_owner_of_a_robot_is_sent_to_a_wire_that_no_robot_speaks_as_sold() -> None:
    error = unsupported("change how an action is played", "webrtc", "tempo")
    assert (
        error.remedy
        == "No robot with stock firmware can. A simulated robot can, by udp:// or sim://."
    )
    assert error.wires_that_can == ("udp://", "sim://")


def test_the_advice_names_wires_that_robots_speak_first_and_then_the_simulated_robot() -> None:
    error = unsupported("rename actions", "udp", "rename")
    assert error.remedy.startswith("Connect by webrtc:// or dds:// instead.")
    assert error.remedy.endswith("A simulated robot can, by sim://.")


def test_a_wire_is_not_advised_to_whoever_is_on_it() -> None:
    for ability in {ability for wire in WIRES.values() for ability in wire.abilities}:
        for scheme, wire in WIRES.items():
            if ability not in wire.abilities | wire.perhaps:
                assert f"{scheme}://" not in unsupported("do it", scheme, ability).remedy
                assert wires_with(ability)


def test_advice_of_ones_own_comes_first() -> None:
    assert unsupported("do it", "udp", "rename", "Do that.").remedy == "Do that."
