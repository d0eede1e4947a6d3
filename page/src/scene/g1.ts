/** The shapes of a G1, link by link: this project's own. */

import type { BufferGeometry } from "three";
import type { Vector } from "../types";
import type { Part, RealPart, Stuff } from "./parts";
import { egg, limb, shell } from "./shapes";

const part = (stuff: Stuff, geometry: BufferGeometry): Part => ({ stuff, geometry });

function middle(link: string): Part[] {
  switch (link) {
    case "pelvis":
      return [
        part(
          "shell",
          shell({
            rings: [
              { at: [0.002, 0, -0.01], x: 0.052, y: 0.066, square: 2.6 },
              { at: [0.002, 0, -0.055], x: 0.064, y: 0.085, square: 2.8 },
              { at: [0, 0, -0.105], x: 0.056, y: 0.06, square: 2.6 },
              { at: [0, 0, -0.145], x: 0.038, y: 0.03, square: 2.4 },
            ],
          }),
        ),
        part("core", limb("y", [0, -0.075, -0.1027], [0, 0.075, -0.1027], 0.044, 0.044, 0.25)),
      ];
    case "waist_yaw_link":
      return [part("core", limb("z", [0, 0, -0.005], [0, 0, 0.035], 0.052, 0.052, 0.2))];
    case "torso_link":
      return [
        part(
          "core",
          shell({
            rings: [
              { at: [0, 0, -0.012], x: 0.048, y: 0.06, square: 2.4 },
              { at: [0, 0, 0.05], x: 0.052, y: 0.068, square: 2.6 },
              { at: [0, 0, 0.1], x: 0.058, y: 0.078, square: 2.8 },
            ],
            deep: 0.2,
          }),
        ),
        part(
          "shell",
          shell({
            rings: [
              { at: [0.002, 0, 0.072], x: 0.062, y: 0.078, square: 2.8 },
              { at: [0.005, 0, 0.125], x: 0.077, y: 0.094, square: 3 },
              { at: [0.008, 0, 0.19], x: 0.087, y: 0.108, square: 3.1 },
              { at: [0.004, 0, 0.25], x: 0.08, y: 0.11, square: 3 },
              { at: [-0.002, 0, 0.295], x: 0.062, y: 0.084, square: 2.6 },
              { at: [-0.006, 0, 0.318], x: 0.046, y: 0.054, square: 2.3 },
            ],
            deep: 0.35,
            sides: 40,
          }),
        ),
        // The pack on the back, and a light on the breast.
        part(
          "core",
          shell({
            rings: [
              { at: [-0.07, 0, 0.105], x: 0.026, y: 0.06, square: 3.4 },
              { at: [-0.078, 0, 0.175], x: 0.032, y: 0.074, square: 3.4 },
              { at: [-0.07, 0, 0.25], x: 0.026, y: 0.062, square: 3.4 },
            ],
          }),
        ),
        part("core", limb("x", [0.07, 0, 0.226], [0.0895, 0, 0.226], 0.022, 0.02, 0.12)),
        part("light", limb("x", [0.086, 0, 0.226], [0.0925, 0, 0.226], 0.0115, 0.0105, 0.2)),
        part("core", limb("z", [-0.004, 0, 0.31], [0, 0, 0.36], 0.036, 0.034, 0.2)),
        part(
          "shell",
          shell({
            rings: [
              { at: [0.004, 0, 0.362], x: 0.05, y: 0.046 },
              { at: [0.004, 0, 0.398], x: 0.073, y: 0.064, square: 2.2 },
              { at: [0.001, 0, 0.442], x: 0.08, y: 0.069, square: 2.2 },
              { at: [-0.004, 0, 0.482], x: 0.068, y: 0.06 },
            ],
            deep: 0.55,
            sides: 40,
          }),
        ),
        part("visor", shell({ rings: egg([0.031, 0, 0.426], [0.0625, 0.0605, 0.053]), deep: 0.2, sides: 48 })),
        part(
          "light",
          shell({
            rings: [
              { at: [0.0455, 0, 0.4285], x: 0.0492, y: 0.05, square: 2.1 },
              { at: [0.0455, 0, 0.4335], x: 0.0492, y: 0.05, square: 2.1 },
            ],
            deep: 0.02,
            shade: 1,
          }),
        ),
      ];
    default:
      return [];
  }
}

/** The parts of a link of one side; `s` is 1 on the left, where y points outward, else -1. */
function sided(link: string, s: number): Part[] {
  const y = (point: Vector): Vector => [point[0], s * point[1], point[2]];
  const across = (from: number, to: number, radius: number, at: Vector = [0, 0, 0]): BufferGeometry =>
    limb(
      "y",
      [at[0], at[1] + Math.min(s * from, s * to), at[2]],
      [at[0], at[1] + Math.max(s * from, s * to), at[2]],
      radius,
      radius,
      0.22,
    );
  switch (link) {
    case "hip_pitch_link":
      return [part("core", across(0.0, 0.058, 0.05)), part("shell", across(0.058, 0.066, 0.036))];
    case "hip_roll_link":
      return [
        part("core", limb("x", [-0.055, 0, 0], [0.055, 0, 0], 0.044, 0.044, 0.25)),
        part(
          "shell",
          shell({
            rings: [
              { at: [0.004, s * 0.004, 0.012], x: 0.052, y: 0.05, square: 2.5 },
              { at: [0.016, s * 0.006, -0.045], x: 0.062, y: 0.058, square: 2.5 },
              { at: [0.025, s * 0.004, -0.118], x: 0.06, y: 0.056, square: 2.4 },
            ],
            deep: 0.4,
          }),
        ),
      ];
    case "hip_yaw_link":
      return [
        part("core", limb("z", [-0.004, 0, -0.022], [0, 0, 0.002], 0.05, 0.05, 0.2)),
        part(
          "shell",
          shell({
            rings: [
              { at: [-0.006, s * 0.002, -0.024], x: 0.059, y: 0.055, square: 2.4 },
              { at: [-0.026, s * 0.002, -0.078], x: 0.055, y: 0.052, square: 2.4 },
              { at: [-0.056, s * 0.002, -0.138], x: 0.046, y: 0.046, square: 2.4 },
              { at: [-0.076, s * 0.002, -0.176], x: 0.04, y: 0.042, square: 2.3 },
            ],
            deep: 0.5,
          }),
        ),
      ];
    case "knee_link":
      return [
        part("core", limb("y", [0, -0.044, 0], [0, 0.044, 0], 0.041, 0.041, 0.22)),
        part("shell", limb("y", [0, -0.05, 0], [0, 0.05, 0], 0.026, 0.026, 0.2)),
        part(
          "shell",
          shell({
            rings: [
              { at: [0.006, 0, -0.02], x: 0.042, y: 0.038, square: 2.5 },
              { at: [0.002, 0, -0.085], x: 0.05, y: 0.045, square: 2.5 },
              { at: [-0.002, 0, -0.165], x: 0.041, y: 0.039, square: 2.4 },
              { at: [0, 0, -0.25], x: 0.03, y: 0.031, square: 2.2 },
            ],
          }),
        ),
        part("core", limb("z", [0, 0, -0.3], [0, 0, -0.25], 0.023, 0.026, 0.3)),
      ];
    case "ankle_pitch_link":
      return [part("core", limb("y", [0, -0.03, 0], [0, 0.03, 0], 0.024, 0.024, 0.3))];
    case "ankle_roll_link":
      return [
        part(
          "shell",
          shell({
            rings: [
              { at: [0, -0.008, -0.044], x: 0.026, y: 0.017, square: 2.6 },
              { at: [0, -0.001, -0.005], x: 0.034, y: 0.026, square: 2.6 },
              { at: [0, -0.01, 0.06], x: 0.036, y: 0.017, square: 2.6 },
              { at: [0, -0.017, 0.115], x: 0.029, y: 0.01, square: 2.4 },
            ],
            along: "x",
          }),
        ),
        part(
          "core",
          shell({
            rings: [
              { at: [0, -0.027, -0.05], x: 0.029, y: 0.008, square: 3 },
              { at: [0, -0.027, 0.03], x: 0.036, y: 0.008, square: 3 },
              { at: [0, -0.027, 0.122], x: 0.029, y: 0.008, square: 2.6 },
            ],
            along: "x",
            deep: 0.9,
          }),
        ),
      ];
    case "shoulder_pitch_link":
      return [part("core", across(-0.012, 0.05, 0.041))];
    case "shoulder_roll_link":
      return [
        part(
          "shell",
          shell({
            rings: [
              { at: [0, s * 0.002, 0.016], x: 0.043, y: 0.042, square: 2.2 },
              { at: [0, s * 0.005, -0.022], x: 0.047, y: 0.045, square: 2.2 },
              { at: [0, s * 0.006, -0.09], x: 0.038, y: 0.037, square: 2.2 },
            ],
            deep: 0.75,
          }),
        ),
      ];
    case "shoulder_yaw_link":
      return [
        part("core", limb("z", [0, 0, -0.018], [0, 0, 0.008], 0.034, 0.034, 0.2)),
        part(
          "shell",
          shell({
            rings: [
              { at: [0, 0, -0.014], x: 0.038, y: 0.037, square: 2.3 },
              { at: [0.006, 0, -0.045], x: 0.037, y: 0.036, square: 2.3 },
              { at: [0.014, 0, -0.074], x: 0.032, y: 0.031, square: 2.3 },
            ],
          }),
        ),
      ];
    case "elbow_link":
      return [
        part("core", limb("y", [0, -0.034, 0], [0, 0.034, 0], 0.033, 0.033, 0.22)),
        part("shell", limb("y", [0, -0.039, 0], [0, 0.039, 0], 0.02, 0.02, 0.2)),
        part(
          "shell",
          shell({
            rings: [
              { at: [0, -0.006, 0.018], x: 0.033, y: 0.033, square: 2.3 },
              { at: [0, -0.009, 0.055], x: 0.036, y: 0.035, square: 2.3 },
              { at: [0, -0.01, 0.094], x: 0.031, y: 0.031, square: 2.2 },
            ],
            along: "x",
          }),
        ),
      ];
    case "wrist_roll_link":
      return [part("core", limb("x", [-0.002, 0, 0], [0.034, 0, 0], 0.027, 0.027, 0.2))];
    case "wrist_pitch_link":
      return [
        part("shell", limb("x", [0.004, 0, 0], [0.036, 0, 0], 0.029, 0.027, 0.4)),
        part("core", limb("y", [0, -0.026, 0], [0, 0.026, 0], 0.02, 0.02, 0.25)),
      ];
    case "wrist_yaw_link":
      return hand(y);
    default:
      return [];
  }
}

/** A hand with four fingers a little bent and a thumb; `y` puts a point on its side. */
function hand(y: (point: Vector) => Vector): Part[] {
  const finger = (points: Vector[], radius: number): Part[] =>
    points
      .slice(1)
      .map((to, index) => part("core", limb("x", y(points[index] as Vector), y(to), radius, radius * 0.88, 0.9)));
  const fingers = [-0.027, -0.009, 0.009, 0.027].flatMap((z, index) => {
    const reach = [0.058, 0.066, 0.064, 0.052][index] as number;
    return finger(
      [
        [0.092, 0, z],
        [0.092 + reach * 0.55, -0.006, z * 1.05],
        [0.092 + reach, -0.022, z * 1.05],
      ],
      0.0088,
    );
  });
  return [
    part("core", limb("x", [-0.002, 0, 0], [0.022, 0, 0], 0.023, 0.023, 0.3)),
    part(
      "core",
      shell({
        rings: [
          { at: [0, 0, 0.03], x: 0.015, y: 0.026, square: 2.8 },
          { at: [0, 0, 0.066], x: 0.017, y: 0.037, square: 3 },
          { at: [0, 0, 0.094], x: 0.014, y: 0.036, square: 3 },
        ],
        along: "x",
      }),
    ),
    ...fingers,
    ...finger(
      [
        [0.046, -0.008, 0.03],
        [0.07, -0.022, 0.048],
        [0.094, -0.034, 0.05],
      ],
      0.0098,
    ),
  ];
}

/** The parts of a link of a G1; none where it has no such link. */
export function g1Parts(link: string): Part[] {
  const [side, ...rest] = link.split("_");
  if (side === "left") return sided(rest.join("_"), 1);
  if (side === "right") return sided(rest.join("_"), -1);
  return middle(link);
}

/** A face behind the opening of the real head, with the light that tells what goes on. */
export function face(): RealPart[] {
  const strip = { x: 0.03, y: 0.04, square: 2.4 };
  return [
    { stuff: "visor", geometry: shell({ rings: egg([0.02, 0, 0.388], [0.031, 0.037, 0.037]), deep: 0.2 }), scale: 1 },
    {
      stuff: "light",
      geometry: shell({
        rings: [
          { at: [0.03, 0, 0.4265], ...strip },
          { at: [0.03, 0, 0.4325], ...strip },
        ],
        deep: 0.02,
        shade: 1,
      }),
      scale: 1,
    },
  ];
}
