/** The 3D view: light, ground, camera, the robot and its ghost. Draws only when something changed. */

import {
  AmbientLight,
  BufferAttribute,
  CanvasTexture,
  Color,
  DirectionalLight,
  HemisphereLight,
  LinearFilter,
  type Material,
  Mesh,
  MeshBasicMaterial,
  MeshLambertMaterial,
  MeshPhysicalMaterial,
  MeshStandardMaterial,
  Object3D,
  PCFShadowMap,
  PerspectiveCamera,
  Plane,
  PlaneGeometry,
  PMREMGenerator,
  Raycaster,
  Scene,
  ShadowMaterial,
  SRGBColorSpace,
  Vector2,
  Vector3,
  WebGLRenderer,
  ACESFilmicToneMapping,
} from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import { RoomEnvironment } from "three/examples/jsm/environments/RoomEnvironment.js";
import type { LimbEnd, Place, RobotModel, Vector } from "../types";
import type { Renderer, Quality } from "./renderer";
import { RobotGroup, type Member } from "./robot-group";
import { Figure } from "./figure";
import { face } from "./g1";
import { FrameTimes } from "./frame-times";
import type { Materials, RealPart } from "./parts";
import { endOf, reached } from "./reach";
import { extents } from "./tree";
import { LinkGeometry } from "./link-geometry";

Object3D.DEFAULT_UP.set(0, 0, 1);

/** Where the end of a limb is: on the canvas in points, and in metres from the base. */
export interface EndPlace {
  x: number;
  y: number;
  seen: boolean;
  at_m: Vector;
}

/** Turns where a pointer has gone into a whole pose. */
export type Lead = (event: PointerEvent) => number[];

export type Mood = "idle" | "teaching" | "playing" | "lost";

/** Called while a person turns a joint in the view; null when they let go. */
export type OnTurn = (joint: string | null, value_rad: number) => void;

const MOODS: Record<Mood, number> = { idle: 0x5ecbe8, teaching: 0xffb454, playing: 0x6ee7a0, lost: 0x6b7480 };
/** What a robot fades to that is not there: where it stands is only where it was. */
const ABSENT = new Color(0x8b939d);
/** Where one looks at a robot from: what stands upright from the front, what is long from its side. */
interface Framing {
  at: Vector3;
  from: Vector3;
  /** What is to be seen of it, with an arm or a leg raised. */
  tall_m: number;
  wide_m: number;
  /** Its longest side. */
  size_m: number;
}

function framingOf(model: RobotModel): Framing {
  const { low, high } = extents(model);
  const [long, wide, tall] = high.clone().sub(low).toArray();
  const size_m = Math.max(long, wide, tall, 0.1);
  if (tall >= long) {
    return {
      at: new Vector3(0, 0, 0.56 * tall),
      from: new Vector3(2.35, 0.95, 0.42).normalize(),
      tall_m: 1.27 * size_m,
      wide_m: 0.72 * size_m,
      size_m,
    };
  }
  return {
    at: new Vector3(0, 0, 0.5 * tall),
    from: new Vector3(1.5, 1.75, 0.75).normalize(),
    tall_m: 1.3 * size_m,
    wide_m: 1.5 * size_m,
    size_m,
  };
}

/** Pixels per point without a graphics card: while things move, and when they have come to rest. */
const COARSE = 0.75;
const COARSEST = 0.4;
const FINE = 1.5;
const REST_MS = 450;
/** A foot that is higher than this casts no shadow of its own. */
const LIFTED_M = 0.09;
/** Without a graphics card the processor draws, and others wait for it: two frames are so far apart on
    average. After one that took longer than two beats of the screen there is a pause as long as the excess. */
const FRAME_MS = 26;
const BEAT_MS = 17;
const TWO_BEATS_MS = 36;
/** A frame that takes longer gets fewer pixels; at rest the picture gets as many as this allows. */
const HEAVY_FRAME_MS = 25;
const LONGEST_FRAME_MS = 80;
/** The least turn worth a new frame; reports from a robot at rest tremble by less. */
const MIN_RAD = 1.2e-3;

function materials(quality: Quality): Materials {
  if (quality === "low") {
    return {
      shell: new MeshLambertMaterial({ color: 0xf2f4f7, vertexColors: true }),
      core: new MeshLambertMaterial({ color: 0x3a414c, vertexColors: true }),
      visor: new MeshLambertMaterial({ color: 0x14181e, emissive: 0x0a0e14, vertexColors: true }),
      light: new MeshBasicMaterial({ color: MOODS.idle }),
    };
  }
  return {
    shell: new MeshPhysicalMaterial({
      color: 0xdde1e6,
      roughness: 0.42,
      clearcoat: 0.55,
      clearcoatRoughness: 0.3,
      vertexColors: true,
    }),
    core: new MeshStandardMaterial({ color: 0x30363f, roughness: 0.48, metalness: 0.55, vertexColors: true }),
    visor: new MeshPhysicalMaterial({
      color: 0x0a0d12,
      roughness: 0.12,
      metalness: 0.2,
      clearcoat: 1,
      vertexColors: true,
    }),
    light: new MeshBasicMaterial({ color: MOODS.idle, toneMapped: false }),
  };
}

function ghostly(colour: number): Materials {
  const made = (opacity: number): Material =>
    new MeshLambertMaterial({
      color: colour,
      emissive: colour,
      emissiveIntensity: 0.25,
      transparent: true,
      opacity,
      depthWrite: false,
    });
  const [shell, core] = [made(0.42), made(0.3)];
  return { shell, core, visor: core, light: core };
}

/** A round patch of floor with a grid that fades outward. */
function floorTexture(dark: boolean, quality: Quality): CanvasTexture {
  const size = 1024;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const draw = canvas.getContext("2d") as CanvasRenderingContext2D;
  const glow = draw.createRadialGradient(size / 2, size / 2, 0, size / 2, size / 2, size / 2);
  const [near, far] = dark
    ? ["rgba(58,70,86,0.85)", "rgba(28,34,43,0)"]
    : ["rgba(255,255,255,0.95)", "rgba(226,231,238,0)"];
  glow.addColorStop(0, near);
  glow.addColorStop(1, far);
  draw.fillStyle = glow;
  draw.fillRect(0, 0, size, size);
  const cells = 24;
  for (let line = 0; line <= cells; line += 1) {
    const at = (line * size) / cells;
    const strong = line % 4 === 0;
    draw.strokeStyle = dark ? `rgba(150,175,205,${strong ? 0.34 : 0.15})` : `rgba(60,80,105,${strong ? 0.3 : 0.13})`;
    draw.lineWidth = strong ? 2 : 1.2;
    draw.beginPath();
    draw.moveTo(at, 0);
    draw.lineTo(at, size);
    draw.moveTo(0, at);
    draw.lineTo(size, at);
    draw.stroke();
  }
  const fade = draw.createRadialGradient(size / 2, size / 2, size * 0.08, size / 2, size / 2, size / 2);
  fade.addColorStop(0, "rgba(0,0,0,1)");
  fade.addColorStop(1, "rgba(0,0,0,0)");
  draw.globalCompositeOperation = "destination-in";
  draw.fillStyle = fade;
  draw.fillRect(0, 0, size, size);
  const texture = new CanvasTexture(canvas);
  texture.colorSpace = SRGBColorSpace;
  texture.anisotropy = quality === "high" ? 4 : 1; // the processor would draw it four times
  return texture;
}

/** A soft dark spot, for what stands on the floor. */
function spotTexture(): CanvasTexture {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 128;
  const draw = canvas.getContext("2d") as CanvasRenderingContext2D;
  const glow = draw.createRadialGradient(64, 64, 0, 64, 64, 64);
  glow.addColorStop(0, "rgba(0,0,0,0.62)");
  glow.addColorStop(0.45, "rgba(0,0,0,0.28)");
  glow.addColorStop(1, "rgba(0,0,0,0)");
  draw.fillStyle = glow;
  draw.fillRect(0, 0, 128, 128);
  const texture = new CanvasTexture(canvas);
  texture.minFilter = LinearFilter;
  return texture;
}

function unshaded(part: Object3D): void {
  part.castShadow = part.receiveShadow = false;
}

/** The meshes below a node of a file; ours are shaded by a colour at every corner, so they get one. */
function realParts(node: Object3D | undefined): RealPart[] {
  const parts: RealPart[] = [];
  node?.traverse((part) => {
    if (!(part instanceof Mesh)) return;
    const geometry = part.geometry;
    const white = new Uint8Array(3 * geometry.getAttribute("position").count).fill(255);
    geometry.setAttribute("color", new BufferAttribute(white, 3, true));
    parts.push({ stuff: part.material.name === "core" ? "core" : "shell", geometry, scale: part.scale.x });
  });
  return parts;
}

/** The middle of what stands on the floor at rest, on each link that does. */
function feetOf(robot: Figure, model: RobotModel): Place[] {
  const low = model.floor.filter((place) => (robot.where(place)?.z ?? 1) < 0.04);
  return [...new Set(low.map(({ link }) => link))].map((link) => {
    const places = low.filter((place) => place.link === link).map(({ at }) => at);
    return {
      link,
      at: [0, 1, 2].map((axis) => places.reduce((sum, at) => sum + (at[axis] as number), 0) / places.length) as Vector,
    };
  });
}

export class Viewport3D {
  private readonly renderer: WebGLRenderer;
  private readonly scene = new Scene();
  private readonly camera = new PerspectiveCamera(30, 1, 0.1, 120);
  private readonly controls: OrbitControls;
  private readonly geometry: LinkGeometry;
  private gaze: Framing;
  private readonly ownGaze: Framing;
  private group: RobotGroup | null = null;
  private readonly worn: Materials;
  private readonly robot: Figure;
  private readonly ghost: Figure;
  private readonly spirit = ghostly(0x5ecbe8);
  private readonly glow: MeshLambertMaterial;
  private readonly floor: Mesh<PlaneGeometry, MeshBasicMaterial>;
  private readonly spots: Mesh[] = [];
  private readonly feet: Place[];
  private readonly watch: ResizeObserver;
  private dirty = true;
  private pose: number[];
  private lastPose: number[] = [];
  private framing = true;
  private lastFrame = 0;
  /** When the next frame may be drawn, in low quality. */
  private due = 0;
  private slow = 0;
  private readonly frameTimes = new FrameTimes();
  private changed = 0;
  private coarse = COARSE;
  private resting = true;
  /** How long the last frame held up the page, and whether that is still to be seen. */
  private took = 0;
  /** How long the quickest of the last frames did: what else the computer does shall not count. */
  private quickest = LONGEST_FRAME_MS;
  private drawn = false;
  private fine = false;
  private onTurn: OnTurn | null = null;
  /** Frames drawn so far; the tests read it. */
  frames = 0;

  private readonly canvas: HTMLCanvasElement;
  private readonly quality: Quality;

  constructor(
    { canvas, gl, quality }: Renderer,
    private readonly model: RobotModel,
    private readonly onSlow: () => void,
  ) {
    this.canvas = canvas;
    this.quality = quality;
    const high = quality === "high";
    this.renderer = new WebGLRenderer({ canvas, context: gl, alpha: true });
    this.renderer.setPixelRatio(high ? Math.min(2, window.devicePixelRatio) : COARSE);
    this.renderer.setClearAlpha(0);
    if (high) {
      this.renderer.toneMapping = ACESFilmicToneMapping;
      this.renderer.toneMappingExposure = 0.9;
      this.renderer.shadowMap.enabled = true;
      this.renderer.shadowMap.type = PCFShadowMap;
      const maker = new PMREMGenerator(this.renderer);
      this.scene.environment = maker.fromScene(new RoomEnvironment(), 0.04).texture;
      this.scene.environmentIntensity = 0.42;
      maker.dispose();
    }
    this.lights(high);
    this.worn = materials(quality);
    this.glow = new MeshLambertMaterial({ color: 0x5ecbe8, emissive: 0x2a90ad, vertexColors: true });
    this.geometry = new LinkGeometry(model);
    this.gaze = this.ownGaze = framingOf(model);
    this.robot = new Figure(model, this.geometry, this.worn);
    this.ghost = new Figure(model, this.geometry, this.spirit);
    this.ghost.root.visible = false;
    this.ghost.root.traverse(unshaded);
    this.floor = new Mesh(
      new PlaneGeometry(6, 6),
      new MeshBasicMaterial({ transparent: true, depthWrite: false, toneMapped: false }),
    );
    this.scene.add(this.floor, this.robot.root, this.ghost.root);
    this.robot.pose(model.rest_rad);
    this.feet = feetOf(this.robot, model);
    this.shadows(high);
    this.pose = [...model.rest_rad];
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.target.copy(this.gaze.at);
    this.controls.enableDamping = high;
    this.controls.maxPolarAngle = Math.PI * 0.53;
    this.controls.minDistance = 0.45 * this.gaze.size_m;
    this.controls.maxDistance = 6 * this.gaze.size_m;
    this.controls.addEventListener("start", () => {
      this.framing = false;
    });
    this.controls.addEventListener("change", () => {
      this.dirty = true;
    });
    this.watch = new ResizeObserver(() => this.fit());
    this.watch.observe(canvas.parentElement as HTMLElement);
    canvas.addEventListener("pointerdown", this.grab, { capture: true });
    this.fit();
  }

  private lights(high: boolean): void {
    const sky = new HemisphereLight(0xffffff, 0x5a6575, high ? 0.75 : 1.75);
    sky.position.set(0, 0, 1);
    const sun = new DirectionalLight(0xfff6ea, high ? 1.9 : 1.7);
    sun.position.set(1.8, 1.6, 3.2);
    sun.target.position.set(0, 0, 0.6);
    const rim = new DirectionalLight(0xbfe4ff, high ? 1.1 : 0.8);
    rim.position.set(-2.5, -1.6, 1.8);
    if (high) {
      sun.castShadow = true;
      sun.shadow.mapSize.set(2048, 2048);
      sun.shadow.radius = 5;
      sun.shadow.bias = -0.0004;
      sun.shadow.normalBias = 0.012;
      Object.assign(sun.shadow.camera, { left: -1.1, right: 1.1, top: 1.3, bottom: -1.1, near: 1, far: 7 });
    }
    this.scene.add(sky, sun, sun.target, rim, new AmbientLight(0xffffff, high ? 0.1 : 0.15));
  }

  private shadows(high: boolean): void {
    if (high) {
      const catcher = new Mesh(new PlaneGeometry(6, 6), new ShadowMaterial({ opacity: 0.34 }));
      catcher.position.z = 0.001;
      catcher.receiveShadow = true;
      this.scene.add(catcher);
    }
    const spot = spotTexture();
    const whole = this.gaze.size_m;
    for (const size of [...this.feet.map(() => (0.5 * whole) / Math.max(2, this.feet.length)), 0.72 * whole]) {
      const material = new MeshBasicMaterial({
        map: spot,
        transparent: true,
        depthWrite: false,
        opacity: high ? 0.45 : 0.85,
      });
      const mesh = new Mesh(new PlaneGeometry(size, size * 0.8), material);
      mesh.position.z = 0.002;
      mesh.renderOrder = 1;
      this.spots.push(mesh);
      this.scene.add(mesh);
    }
  }

  /** Suit the floor to the page's colours. */
  theme(dark: boolean): void {
    this.floor.material.map?.dispose();
    this.floor.material.map = floorTexture(dark, this.quality);
    this.floor.material.needsUpdate = true;
    this.dirty = true;
  }

  mood(mood: Mood): void {
    (this.worn.light as MeshBasicMaterial).color = new Color(MOODS[mood]);
    for (const stuff of ["shell", "core", "visor"] as const) {
      const material = this.worn[stuff] as MeshLambertMaterial | MeshStandardMaterial;
      const own = (material.userData["own"] ??= material.color.clone()) as Color;
      material.color.copy(own);
      if (mood === "lost") material.color.lerp(ABSENT, 0.75);
    }
    this.dirty = true;
  }

  /** Show the robot in this pose from the next frame on. */
  show(pose: readonly number[]): void {
    this.pose = [...pose];
  }

  /** Show where it would be, as a ghost; null shows none. */
  preview(pose: readonly number[] | null): void {
    this.ghost.root.visible = pose !== null;
    if (pose) this.ghost.pose(pose);
    this.dirty = true;
  }

  /** Show a whole cast side by side instead of the robot; null shows the robot again. */
  gather(members: readonly Member[] | null): void {
    this.group?.root.removeFromParent();
    this.group?.dispose();
    this.group = members?.length ? new RobotGroup(members, this.worn) : null;
    this.robot.root.visible = this.group === null;
    for (const spot of this.spots) spot.visible = this.group === null;
    this.gaze = this.ownGaze;
    if (this.group) {
      const { wide_m, tall_m } = this.group;
      const at = new Vector3(0, 0, 0.43 * tall_m);
      const from = new Vector3(2.4, 0.25, 0.55).normalize();
      this.gaze = { at, from, tall_m, wide_m, size_m: Math.max(wide_m, tall_m) };
      this.scene.add(this.group.root);
    }
    this.floor.scale.setScalar(Math.max(1, this.gaze.size_m / 2.5));
    this.controls.maxDistance = 6 * this.gaze.size_m;
    this.home();
  }

  /** Show the cast in these poses from the next frame on. */
  perform(poses: readonly (readonly number[])[]): void {
    this.group?.pose(poses);
    this.dirty = true;
  }

  /** Light up the link a joint moves. */
  point(joint: string | null): void {
    const link = this.model.joints.find((each) => each.name === joint)?.link ?? null;
    this.robot.light(link, this.glow, this.worn);
    this.dirty = true;
  }

  /** Let a person turn joints in the view, or not. */
  turnable(onTurn: OnTurn | null): void {
    this.onTurn = onTurn;
    this.canvas.toggleAttribute("data-turnable", onTurn !== null);
  }

  /** Wear real shapes instead of our own, where the server has them and a graphics card draws. */
  async wear(url: string): Promise<void> {
    if (this.quality === "low") return;
    const { GLTFLoader } = await import("three/examples/jsm/loaders/GLTFLoader.js");
    const { scene } = await new GLTFLoader().loadAsync(url);
    for (const link of this.robot.links.keys()) {
      const parts = realParts(scene.getObjectByName(link));
      if (!parts.length) continue;
      if (link === "torso_link") parts.push(...face());
      this.robot.wear(link, parts, this.worn);
      this.ghost.wear(link, parts, this.spirit);
    }
    this.ghost.root.traverse(unshaded);
    this.dirty = true;
  }

  home(): void {
    this.framing = true;
    this.controls.target.copy(this.gaze.at);
    this.fit();
  }

  private fit(): void {
    const box = (this.canvas.parentElement as HTMLElement).getBoundingClientRect();
    const [width, height] = [Math.max(1, box.width), Math.max(1, box.height)];
    this.renderer.setSize(width, height, false);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    if (this.framing) {
      const half = Math.tan((this.camera.fov * Math.PI) / 360);
      const { at, from, tall_m, wide_m } = this.gaze;
      const away = Math.max(tall_m / 2 / half, wide_m / 2 / half / this.camera.aspect);
      this.camera.position.copy(at).addScaledVector(from, away);
      this.controls.update();
    }
    this.dirty = true;
    // A canvas that changed its size is empty until it is drawn again.
    if (this.frames > 0) this.draw();
  }

  /** Draw, if anything is new; called once per frame of the screen. */
  frame(now: number): void {
    if (this.drawn) {
      this.took = now - this.lastFrame;
      this.quickest = Math.min(this.took, 1.03 * this.quickest);
      this.drawn = false;
    }
    if (this.quality === "low" && (now < this.due || now - this.lastFrame < 2 * this.took - TWO_BEATS_MS)) return;
    if (this.controls.enableDamping) this.controls.update();
    const moved = this.pose.some((angle, index) => Math.abs(angle - (this.lastPose[index] ?? 9)) > MIN_RAD);
    if (!moved && !this.dirty) {
      this.resting = true;
      if (this.quality === "low" && !this.fine && now - this.changed > REST_MS) this.refine(this.finest());
      return;
    }
    this.changed = now;
    this.due = Math.max(this.due + FRAME_MS, now);
    if (this.fine) this.coarsen();
    if (moved) {
      this.robot.pose(this.pose);
      this.lastPose = this.pose;
      this.feet.forEach((foot, index) => {
        const at = this.robot.where(foot);
        const spot = this.spots[index];
        if (!at || !spot) return;
        spot.position.set(at.x, at.y, 0.002);
        spot.visible = at.z < LIFTED_M && this.group === null;
      });
    }
    this.draw();
    if (!this.resting) this.judge(this.quality === "low" ? this.took : now - this.lastFrame);
    this.lastFrame = now;
    this.resting = false;
    this.drawn = true;
  }

  /** As many pixels per point as are drawn in time, by what the quickest of the last frames took. */
  private finest(): number {
    const more = Math.sqrt(LONGEST_FRAME_MS / Math.max(this.quickest, BEAT_MS));
    return Math.min(FINE, Math.max(this.coarse, this.coarse * more));
  }

  /** Draw once more with so many pixels per point, until something moves. */
  private refine(ratio: number): void {
    this.fine = true;
    this.renderer.setPixelRatio(ratio);
    this.draw();
  }

  /** Draw with few pixels again; the frame that follows does it. */
  private coarsen(): void {
    this.fine = false;
    this.renderer.setPixelRatio(this.coarse);
  }

  private draw(): void {
    if (this.ghost.root.visible) {
      this.robot.root.updateMatrixWorld();
      this.ghost.root.updateMatrixWorld();
      this.ghost.differFrom(this.robot);
    }
    this.renderer.render(this.scene, this.camera);
    this.dirty = false;
    this.frames += 1;
  }

  /** Draw less where frames take long: fewer pixels, or in low quality altogether. */
  private judge(took: number): void {
    if (this.quality === "high") {
      if (this.frameTimes.tooSlow(took)) this.onSlow();
      return;
    }
    this.slow = took > HEAVY_FRAME_MS ? this.slow + 1 : 0;
    if (this.slow > 3 && this.coarse > COARSEST) {
      this.slow = 0;
      this.coarse = Math.max(COARSEST, this.coarse - 0.12);
      this.renderer.setPixelRatio(this.coarse);
    }
  }

  private readonly grab = (event: PointerEvent): void => {
    const onTurn = this.onTurn;
    if (!onTurn || event.button !== 0) return;
    const hit = this.ray(event)
      .intersectObject(this.robot.root)
      .find(({ object }) => object.userData["link"]);
    const hinge = hit ? this.movable(hit.object.userData["link"] as string) : null;
    if (!hit || !hinge) return;
    event.stopPropagation();
    this.controls.enabled = false;
    this.canvas.setPointerCapture(event.pointerId);
    const { joint, origin, axis } = hinge;
    this.point(joint.name);
    const start = this.pose[joint.index] ?? 0;
    const turned = this.turning(event, origin, axis);
    const move = (next: PointerEvent): void => {
      const value = Math.min(joint.upper_rad, Math.max(joint.lower_rad, start + turned(next)));
      onTurn(joint.name, value);
    };
    const end = (): void => {
      this.canvas.removeEventListener("pointermove", move);
      this.controls.enabled = true;
      this.point(null);
      onTurn(null, 0);
    };
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", end, { once: true });
    this.canvas.addEventListener("pointercancel", end, { once: true });
  };

  /** The nearest taught joint that moves a link: the link's own, or one nearer to the body. */
  private movable(link: string): ReturnType<Figure["hinge"]> {
    let hinge = this.robot.hinge(link);
    while (hinge && !hinge.joint.taught) hinge = this.robot.hinge(hinge.joint.parent);
    return hinge;
  }

  private ray(event: PointerEvent): Raycaster {
    const box = this.canvas.getBoundingClientRect();
    const at = new Vector2(
      ((event.clientX - box.left) / box.width) * 2 - 1,
      1 - ((event.clientY - box.top) / box.height) * 2,
    );
    const ray = new Raycaster();
    ray.setFromCamera(at, this.camera);
    return ray;
  }

  /** Return how far a pointer has turned about an axis since it went down. */
  private turning(down: PointerEvent, origin: Vector3, axis: Vector3): (event: PointerEvent) => number {
    const plane = new Plane().setFromNormalAndCoplanarPoint(axis, origin);
    const arm = (event: PointerEvent): Vector3 | null =>
      this.ray(event).ray.intersectPlane(plane, new Vector3())?.sub(origin) ?? null;
    const first = arm(down);
    const facing = Math.abs(this.camera.getWorldDirection(new Vector3()).dot(axis));
    if (!first || facing < 0.35) return (event) => (down.clientY - event.clientY) / 120;
    let last = first;
    let sum = 0;
    return (event) => {
      const now = arm(event);
      if (now) {
        sum += Math.atan2(new Vector3().crossVectors(last, now).dot(axis), last.dot(now));
        last = now;
      }
      return sum;
    };
  }

  // ---- the ends of limbs, which can be dragged ---------------------------------------------------

  /** Whose limbs are taken hold of: the ghost's, or the robot's where there is none. */
  private get held(): Figure {
    return this.ghost.root.visible ? this.ghost : this.robot;
  }

  /** Where the ends of some limbs are seen, in a pose. */
  endPlaces(ends: readonly LimbEnd[], pose: readonly number[]): (EndPlace | null)[] {
    const box = this.canvas.getBoundingClientRect();
    return ends.map((end) => {
      const place = this.held.where(end);
      if (!place) return null;
      const flat = place.clone().project(this.camera);
      return {
        x: ((flat.x + 1) / 2) * box.width,
        y: ((1 - flat.y) / 2) * box.height,
        seen: Math.abs(flat.x) <= 1 && Math.abs(flat.y) <= 1 && flat.z < 1,
        at_m: endOf(this.model, end, pose).toArray(),
      };
    });
  }

  /** Where the end of a limb is in a pose of a robot, which may be of another build than the one shown. */
  locate(model: RobotModel, end: LimbEnd, pose: readonly number[]): Vector {
    return endOf(model, end, pose).toArray();
  }

  /** Where the end of a limb is in each of some poses, in metres from the base. */
  pathOf(end: LimbEnd, poses: readonly (readonly number[])[]): Vector[] {
    return poses.map((pose) => this.locate(this.model, end, pose));
  }

  /** Where places, in metres from the base, are seen on the canvas, in points. */
  project(places: readonly Vector[]): { x: number; y: number }[] {
    const box = this.canvas.getBoundingClientRect();
    return places.map((place) => {
      const flat = new Vector3(...place).add(this.held.root.position).project(this.camera);
      return { x: ((flat.x + 1) / 2) * box.width, y: ((1 - flat.y) / 2) * box.height };
    });
  }

  /** Return the columns of some joints in a pose, by name; those that this robot does not have are left out. */
  columns(names: readonly string[]): Record<string, number> {
    const own = this.model.joints.filter(({ name }) => names.includes(name));
    return Object.fromEntries(own.map(({ name, index }) => [name, index]));
  }

  /** Take hold of the end of a limb: it follows the pointer, in the plane that one looks at. */
  take(end: LimbEnd, pose: readonly number[], down: PointerEvent): Lead | null {
    const place = this.held.where(end);
    if (!place) return null;
    const facing = this.camera.getWorldDirection(new Vector3());
    const plane = new Plane().setFromNormalAndCoplanarPoint(facing, place);
    const hit = (event: PointerEvent): Vector3 | null => this.ray(event).ray.intersectPlane(plane, new Vector3());
    const first = hit(down);
    const tip = endOf(this.model, end, pose);
    return (event) => {
      const now = hit(event);
      return now && first ? reached(this.model, end, pose, tip.clone().add(now.sub(first))) : [...pose];
    };
  }

  /** Return the pose with the end of a limb as near as it reaches to a place, in metres from the base. */
  reach(end: LimbEnd, pose: readonly number[], at_m: Vector): number[] {
    return reached(this.model, end, pose, new Vector3(...at_m));
  }

  /** Move the end of a limb a little, as one looks at it: to the right, upwards, and away. */
  nudge(end: LimbEnd, pose: readonly number[], [right, up, away]: Vector): number[] {
    const facing = this.camera.getWorldDirection(new Vector3()).setZ(0).normalize();
    const across = new Vector3().crossVectors(facing, this.camera.up).normalize();
    const by = across
      .multiplyScalar(right)
      .addScaledVector(facing, away)
      .add(new Vector3(0, 0, up));
    return reached(this.model, end, pose, endOf(this.model, end, pose).add(by));
  }

  dispose(): void {
    this.watch.disconnect();
    this.canvas.removeEventListener("pointerdown", this.grab, { capture: true });
    this.controls.dispose();
    this.group?.dispose();
    this.geometry.dispose();
    this.renderer.dispose();
    this.renderer.forceContextLoss();
  }
}
