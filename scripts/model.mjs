// Simplify the meshes of a G1 and write them as one GLB: a node per link, in the link's frame, z up, metres.
// Called by scripts/model with the folder of STL files and the file to write.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const page = new URL("../page/package.json", import.meta.url);
const { MeshoptSimplifier } = await import(pathToFileURL(createRequire(page).resolve("meshoptimizer")).href);
await MeshoptSimplifier.ready;

const [folder, target] = process.argv.slice(2);
const UNIT_M = 2e-5; // positions are whole numbers of this
const CREASE = Math.cos((38 * Math.PI) / 180); // faces that meet at less than this look like one
const KEEP = 0.18; // of the triangles, at most
const MAX_TRIANGLES = 4200; // of one file
const MAX_ERROR_M = 0.0012;

const SIDED = [
  "hip_pitch_link", "hip_roll_link", "hip_yaw_link", "knee_link", "ankle_pitch_link", "ankle_roll_link", "shoulder_pitch_link",
  "shoulder_roll_link", "shoulder_yaw_link", "elbow_link", "wrist_roll_link", "wrist_pitch_link", "wrist_yaw_link",
];
const DARK = /^(pelvis|head_link|\w+_hip_pitch_link|\w+_ankle_roll_link)$/;

/** What hangs on which link: the file's name, and where its origin is there. */
const parts = [
  { link: "pelvis", file: "pelvis" },
  { link: "pelvis", file: "pelvis_contour_link" },
  { link: "waist_yaw_link", file: "waist_yaw_link_rev_1_0" },
  { link: "waist_roll_link", file: "waist_roll_link_rev_1_0" },
  { link: "torso_link", file: "torso_link_rev_1_0" },
  { link: "torso_link", file: "head_link", at: [0.0039635, 0, -0.044] },
  ...["left", "right"].flatMap((side) => [
    ...SIDED.map((name) => ({ link: `${side}_${name}`, file: `${side}_${name}` })),
    { link: `${side}_wrist_yaw_link`, file: `${side}_rubber_hand`, at: [0.0415, side === "left" ? 0.003 : -0.003, 0] },
  ]),
];

/** Read a binary STL file as points that are shared by its triangles. */
function read(file, at = [0, 0, 0]) {
  const bytes = readFileSync(`${folder}/${file}.STL`);
  const count = bytes.readUInt32LE(80);
  const known = new Map();
  const points = [];
  const index = new Uint32Array(3 * count);
  for (let corner = 0; corner < 3 * count; corner += 1) {
    const from = 84 + 50 * Math.floor(corner / 3) + 12 + 12 * (corner % 3);
    const point = [0, 1, 2].map((axis) => Math.round((bytes.readFloatLE(from + 4 * axis) + at[axis]) / UNIT_M));
    const key = point.join();
    if (!known.has(key)) {
      known.set(key, points.length / 3);
      points.push(...point);
    }
    index[corner] = known.get(key);
  }
  return { points: new Float32Array(points), index };
}

function simplified({ points, index }) {
  const wanted = 3 * Math.min(MAX_TRIANGLES, Math.ceil((KEEP * index.length) / 3));
  const [fewer] = MeshoptSimplifier.simplify(index, points, 3, wanted, MAX_ERROR_M / UNIT_M, ["ErrorAbsolute"]);
  return { points, index: fewer };
}

const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const unit = (a) => {
  const length = Math.hypot(...a) || 1;
  return a.map((value) => value / length);
};

/** Give every corner the mean direction of the faces around it that go on smoothly from its own. */
function shaded({ points, index }) {
  const point = (at) => [points[3 * at], points[3 * at + 1], points[3 * at + 2]];
  const faces = [];
  const around = new Map();
  for (let at = 0; at < index.length; at += 3) {
    const [a, b, c] = [point(index[at]), point(index[at + 1]), point(index[at + 2])];
    const large = cross(minus(b, a), minus(c, a));
    faces.push({ large, way: unit(large) });
    for (let corner = 0; corner < 3; corner += 1) {
      const known = around.get(index[at + corner]);
      if (known) known.push(at / 3);
      else around.set(index[at + corner], [at / 3]);
    }
  }
  const made = { vertices: [], index: [] };
  const known = new Map();
  index.forEach((at, corner) => {
    const own = faces[Math.floor(corner / 3)];
    const sum = [0, 0, 0];
    for (const face of around.get(at)) {
      if (dot(faces[face].way, own.way) < CREASE) continue;
      for (let axis = 0; axis < 3; axis += 1) sum[axis] += faces[face].large[axis];
    }
    const normal = unit(sum).map((value) => Math.round(127 * value));
    const key = `${at},${normal.join()}`;
    if (!known.has(key)) {
      known.set(key, made.vertices.length);
      made.vertices.push({ point: point(at), normal });
    }
    made.index.push(known.get(key));
  });
  return made;
}

// ---- the file ---------------------------------------------------------------------------------

const chunks = [];
let length = 0;
const document = {
  asset: { version: "2.0", generator: "rote", copyright: "Unitree Robotics, BSD-3-Clause; simplified" },
  extensionsUsed: ["KHR_mesh_quantization"],
  extensionsRequired: ["KHR_mesh_quantization"],
  scene: 0,
  scenes: [{ nodes: [] }],
  nodes: [],
  meshes: [],
  materials: [
    { name: "shell", pbrMetallicRoughness: { baseColorFactor: [0.9, 0.91, 0.93, 1], metallicFactor: 0, roughnessFactor: 0.4 } },
    { name: "core", pbrMetallicRoughness: { baseColorFactor: [0.04, 0.05, 0.06, 1], metallicFactor: 0.5, roughnessFactor: 0.5 } },
  ],
  accessors: [],
  bufferViews: [],
  buffers: [],
};

function view(bytes, more) {
  const padded = Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
  document.bufferViews.push({ buffer: 0, byteOffset: length, byteLength: bytes.length, ...more });
  chunks.push(padded);
  length += padded.length;
  return document.bufferViews.length - 1;
}

function accessor(fields) {
  document.accessors.push(fields);
  return document.accessors.length - 1;
}

function mesh({ vertices, index }, dark) {
  const bytes = Buffer.alloc(12 * vertices.length);
  vertices.forEach(({ point, normal }, at) => {
    point.forEach((value, axis) => bytes.writeInt16LE(value, 12 * at + 2 * axis));
    normal.forEach((value, axis) => bytes.writeInt8(value, 12 * at + 8 + axis));
  });
  const wide = vertices.length > 65535;
  const numbers = Buffer.from((wide ? Uint32Array : Uint16Array).from(index).buffer);
  const packed = view(bytes, { byteStride: 12, target: 34962 });
  const low = [0, 1, 2].map((axis) => vertices.reduce((best, { point }) => Math.min(best, point[axis]), Infinity));
  const high = [0, 1, 2].map((axis) => vertices.reduce((best, { point }) => Math.max(best, point[axis]), -Infinity));
  const common = { count: vertices.length, type: "VEC3", bufferView: packed };
  const attributes = {
    POSITION: accessor({ ...common, componentType: 5122, min: low, max: high }),
    NORMAL: accessor({ ...common, componentType: 5120, normalized: true, byteOffset: 8 }),
  };
  const indices = accessor({ bufferView: view(numbers, { target: 34963 }), componentType: wide ? 5125 : 5123, count: index.length, type: "SCALAR" });
  document.meshes.push({ primitives: [{ attributes, indices, material: dark ? 1 : 0 }] });
  return document.meshes.length - 1;
}

let triangles = 0;
const links = new Map();
for (const { link, file, at } of parts) {
  if (!links.has(link)) {
    links.set(link, { name: link, children: [] });
    document.nodes.push(links.get(link));
    document.scenes[0].nodes.push(document.nodes.length - 1);
  }
  const made = shaded(simplified(read(file, at)));
  triangles += made.index.length / 3;
  document.nodes.push({ name: `${file} of ${link}`, mesh: mesh(made, DARK.test(file)), scale: [UNIT_M, UNIT_M, UNIT_M] });
  links.get(link).children.push(document.nodes.length - 1);
}
document.buffers.push({ byteLength: length });

const text = Buffer.from(JSON.stringify(document));
const json = Buffer.concat([text, Buffer.alloc((4 - (text.length % 4)) % 4, " ")]);
const head = (size, kind) => Buffer.from(Uint32Array.of(size, kind).buffer);
const body = [head(json.length, 0x4e4f534a), json, head(length, 0x004e4942), ...chunks];
const size = 12 + body.reduce((sum, chunk) => sum + chunk.length, 0);
writeFileSync(target, Buffer.concat([Buffer.from(Uint32Array.of(0x46546c67, 2, size).buffer), ...body]));
console.log(`The robot's real shapes: ${triangles} triangles, ${Math.round(size / 1000)} kB.`);
