"""The real shapes of a robot, link by link: from the page's GLB file to binary STL."""

import json
import struct
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rote.errors import DecodeError

_MAGIC, _JSON, _BINARY = 0x46546C67, 0x4E4F534A, 0x004E4942  # "glTF", "JSON" and "BIN"
_NUMBER_TYPES: dict[int, str] = {
    5120: "<i1",
    5121: "<u1",
    5122: "<i2",
    5123: "<u2",
    5125: "<u4",
    5126: "<f4",
}
"""The type of numbers that each `componentType` of glTF stands for."""
_STL = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


@lru_cache(4)
def read_links(path: Path) -> frozenset[str]:
    """Return the links that a file has shapes for."""
    document, _ = _read_glb(path)
    return frozenset(str(node["name"]) for node in _find_link_nodes(document))


@lru_cache(128)
def read_stl(path: Path, link: str) -> bytes:
    """Return the shapes of one link as binary STL, in its own frame, in metres.

    Raises `KeyError` for a link that has none, and `DecodeError` for a file that cannot be read.
    """
    document, binary = _read_glb(path)
    node = next((node for node in _find_link_nodes(document) if node["name"] == link), None)
    if node is None:
        raise KeyError(link)
    corners = np.concatenate(_read_triangles(document, binary, node))
    triangles = np.zeros(len(corners), _STL)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    triangles["normal"] = normals / np.where(lengths > 0, lengths, 1.0)
    triangles["corners"] = corners
    title = b"rote: " + link.encode()[:74].ljust(74)  # a header of 80 bytes without meaning
    return title + struct.pack("<I", len(triangles)) + triangles.tobytes()


def _read_glb(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the JSON chunk and the binary chunk of a GLB file.

    The file has a header of 12 bytes, and before each of the two chunks its size and kind in 8.
    """
    data = path.read_bytes()
    try:
        magic, version, _ = struct.unpack_from("<III", data)
        size, kind = struct.unpack_from("<II", data, 12)
        document = json.loads(data[20 : 20 + size])
        binary_size, binary_kind = struct.unpack_from("<II", data, 20 + size)
    except (struct.error, ValueError) as error:
        raise DecodeError(f"{path.name} is not a GLB file: {error}") from None
    if (magic, version, kind, binary_kind) != (_MAGIC, 2, _JSON, _BINARY):
        raise DecodeError(f"{path.name} is not a GLB file of version 2")
    start = 28 + size
    return document, data[start : start + binary_size]


def _find_link_nodes(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the nodes of the links: the top nodes of the scene."""
    scene = document["scenes"][document.get("scene", 0)]
    return [document["nodes"][index] for index in scene["nodes"]]


def _read_triangles(
    document: dict[str, Any], binary: bytes, node: dict[str, Any]
) -> list[NDArray[np.float64]]:
    """Return the corners of all triangles of a node and its children, in arrays of (n, 3, 3)."""
    found = []
    if "mesh" in node:
        for primitive in document["meshes"][node["mesh"]]["primitives"]:
            points = _read_accessor(document, binary, primitive["attributes"]["POSITION"])
            indices = _read_accessor(document, binary, primitive["indices"]).astype(np.intp)
            found.append(points.astype(np.float64)[indices.ravel()].reshape(-1, 3, 3))
    for child in node.get("children", ()):
        found += _read_triangles(document, binary, document["nodes"][child])
    scale = np.array(node.get("scale", (1.0, 1.0, 1.0)))
    move = np.array(node.get("translation", (0.0, 0.0, 0.0)))
    return [corners * scale + move for corners in found]


def _read_accessor(document: dict[str, Any], binary: bytes, number: int) -> NDArray[Any]:
    """Return the values of an accessor, (n, 3) for vectors and (n, 1) for scalars."""
    accessor = document["accessors"][number]
    view = document["bufferViews"][accessor["bufferView"]]
    number_type = np.dtype(_NUMBER_TYPES[accessor["componentType"]])
    width = 3 if accessor["type"] == "VEC3" else 1
    start = view.get("byteOffset", 0) + accessor.get("byteOffset", 0)
    row_bytes = view.get("byteStride", number_type.itemsize * width)
    strides = (row_bytes, number_type.itemsize)
    return np.ndarray((accessor["count"], width), number_type, binary, start, strides)
