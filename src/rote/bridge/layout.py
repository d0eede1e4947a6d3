"""A layout for Foxglove: the robot in 3D, its joints as curves, its status and its findings."""

import json
from typing import Any

from rote.model.registry import build_named

_ARM = ("shoulder_pitch", "shoulder_roll", "elbow")


def foxglove_layout(build: str = "g1-29") -> str:
    """Return a layout as JSON, for the topics of a live view."""
    names = [name for name in build_named(build).taught if any(part in name for part in _ARM)]
    panels: dict[str, Any] = {
        "3D!rote": {
            "layers": {
                "grid": {
                    "layerId": "foxglove.Grid",
                    "instanceId": "grid",
                    "label": "Grid",
                    "visible": True,
                    "size": 4,
                    "divisions": 8,
                    "order": 1,
                },
                "robot": {
                    "layerId": "foxglove.Urdf",
                    "instanceId": "robot",
                    "label": "Robot",
                    "visible": True,
                    "sourceType": "topic",
                    "topic": "/robot_description",
                    "displayMode": "auto",
                    "order": 2,
                },
            },
            "cameraState": {
                "perspective": True,
                "distance": 3.0,
                "phi": 75,
                "thetaOffset": 60,
                "target": [0, 0, 0],
                "targetOffset": [0, 0, 0],
                "targetOrientation": [0, 0, 0, 1],
                "fovy": 45,
                "near": 0.1,
                "far": 100,
            },
            "followMode": "follow-pose",
            "scene": {},
            "transforms": {},
            "topics": {"/joint_states": {"visible": True}},
        },
        "Plot!rote": {
            "title": "Joints [rad]",
            "paths": [
                {
                    "value": f"/joint_states.position[{_joint_column(build, name)}]",
                    "label": name.removesuffix("_joint"),
                    "enabled": True,
                    "timestampMethod": "receiveTime",
                }
                for name in names
            ],
            "showLegend": True,
            "followingViewWidth": 15,
        },
        "RawMessages!rote": {"topicPath": "/rote/status", "expansion": "all"},
        "RosOut!rote": {"topicToRender": "/rote/findings", "minLogLevel": 1, "searchTerms": []},
        "DiagnosticSummary!rote": {"topicToRender": "/diagnostics", "minLevel": 0},
    }
    beside = {
        "direction": "column",
        "first": "RawMessages!rote",
        "second": {
            "direction": "column",
            "first": "DiagnosticSummary!rote",
            "second": "RosOut!rote",
            "splitPercentage": 50,
        },
        "splitPercentage": 35,
    }
    layout = {
        "direction": "row",
        "first": {
            "direction": "column",
            "first": "3D!rote",
            "second": "Plot!rote",
            "splitPercentage": 62,
        },
        "second": beside,
        "splitPercentage": 68,
    }
    document = {
        "configById": panels,
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": layout,
    }
    return json.dumps(document, indent=2) + "\n"


def _joint_column(build: str, name: str) -> int:
    return build_named(build).names.index(name)
