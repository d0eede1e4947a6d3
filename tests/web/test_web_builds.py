"""The pendant with every robot that rote knows: drawn, and simulated where that can be."""

import ast
from pathlib import Path

import pytest

import rote
from rote.model.registry import build_named, families, names
from rote.transport.wires import WIRES
from rote.web.work.drawing import make_drawing
from virtual import run
from web.pendant import one_browser

SOURCE = Path(rote.__file__).parent
KNOWN = {*WIRES, *(family.name for family in families()), *names()}


@pytest.mark.parametrize("name", names())
def test_every_build_is_told_as_one_tree_with_something_to_draw(name: str) -> None:
    build, told = build_named(name), make_drawing(build_named(name))
    assert [joint["name"] for joint in told["joints"]] == list(build.names)
    assert [joint["index"] for joint in told["joints"]] == list(range(len(build.joints)))
    links = {told["base"]}
    mounts = [*told["joints"], *told["fixed"]]
    for _ in mounts:
        links |= {mount["link"] for mount in mounts if mount["parent"] in links}
    assert links == {told["base"]} | {mount["link"] for mount in mounts}
    places = [place for stick in told["sticks"] for place in (stick["start"], stick["end"])]
    assert places
    assert told["floor"]
    places += told["floor"] + ([told["head"]] if told["head"] else [])
    assert {place["link"] for place in places} <= links
    assert {one["link"] for one in (*told["sticks"], *told["shapes"])} <= links


def test_a_quadruped_is_told_with_its_legs() -> None:
    told = make_drawing(build_named("a1"))
    assert (told["base"], told["limbs"], told["model"]) == ("trunk", "legs", False)
    assert {joint["part"] for joint in told["joints"]} == {"leg"}
    movers = {stick["link"] for stick in told["sticks"]}
    assert {"FR_hip", "FR_thigh", "FR_calf", "trunk"} <= movers
    assert make_drawing(build_named("g1"))["limbs"] == "arms"


def test_every_robot_that_can_be_simulated_here_is_offered_and_connected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTE_HOME", str(tmp_path))

    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            offered = (await page.get("/robots"))["simulated"]
            simulated = {
                each.name for one in families() if "sim" in one.wires for each in one.builds
            }
            assert {one["build"] for one in offered} == simulated
            for one in offered:
                build = build_named(one["build"])
                await page.post("/connect", url=one["url"])
                await page.status(
                    lambda s, name=build.name: (  # type: ignore[misc]
                        (s["connection"]["state"], s["build"]) == ("connected", name)
                    )
                )
                wide = len(build.joints)
                await page.until(
                    lambda wide=wide: len(page.latest["state"]["joints_rad"]) == wide  # type: ignore[misc]
                )
                told = await page.get("/robot/joints")
                assert told["build"] == build.name
                # Every joint that is taught can be pulled, by its own name.
                await page.post("/teach/start", name="pull")
                await page.post("/teach/drag", joint=build.taught[-1], value_rad=0.1)
                await page.post("/teach/finish", save=False)
            assert (await page.ask("GET", "/robot/joints?build=nobody")).status_code == 400

    run(story())


@pytest.mark.parametrize("room", ["web", "cli"])
def test_no_code_asks_which_scheme_family_or_build_it_is(room: str) -> None:
    asked = [
        f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)} {name!r}"
        for path in sorted((SOURCE / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _compared(node)
        if name.removesuffix("://") in KNOWN
    ]
    assert asked == []


def _compared(node: ast.AST) -> list[str]:
    """Return the texts that something is compared with, or asked to begin with."""
    places: list[ast.AST] = []
    if isinstance(node, ast.Compare):
        places = [node.left, *node.comparators]
    elif isinstance(node, ast.MatchValue):
        places = [node.value]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        places = list(node.args) if node.func.attr in {"startswith", "endswith"} else []
    return [
        each.value
        for place in places
        for each in ast.walk(place)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]


def test_what_asks_for_a_scheme_or_a_family_would_be_found() -> None:
    for line in ('url.scheme == "sim"', 'url.startswith("a1://")', 'x in {"g1", "h"}'):
        node = ast.parse(line).body[0]
        assert isinstance(node, ast.Expr)
        assert any(name.removesuffix("://") in KNOWN for name in _compared(node.value)), line
