import { describe, expect, it } from "vitest";
import { before, between, PoseStream, rowAt } from "../src/interpolate";

describe("a pose between two", () => {
  it("is in the middle at half time", () => {
    expect(between({ time_s: 1, joints_rad: [0, 2] }, { time_s: 2, joints_rad: [1, 4] }, 1.5)).toEqual([0.5, 3]);
  });
  it("is never beyond its ends", () => {
    const [a, b] = [
      { time_s: 1, joints_rad: [0] },
      { time_s: 2, joints_rad: [1] },
    ];
    expect(between(a, b, 0)).toEqual([0]);
    expect(between(a, b, 9)).toEqual([1]);
  });
  it("of two at the same time is the later one", () => {
    expect(between({ time_s: 1, joints_rad: [0] }, { time_s: 1, joints_rad: [1] }, 1)).toEqual([1]);
  });
});

describe("a row of a table", () => {
  const times = [0, 1, 2, 4];
  const rows = [[0], [10], [20], [40]];
  it("is found for every time", () => {
    expect([-1, 0, 0.5, 1, 3, 4, 9].map((t) => rowAt(times, rows, t)[0])).toEqual([0, 0, 5, 10, 30, 40, 40]);
  });
  it("is the last that has begun", () => {
    expect([-1, 0, 0.9, 1, 3.9, 4, 5].map((t) => before(times, t))).toEqual([0, 0, 0, 1, 2, 3, 3]);
  });
  it("is empty of an empty table", () => {
    expect(rowAt([], [], 1)).toEqual([]);
  });
});

describe("a stream of poses", () => {
  const fed = (jitter: (index: number) => number): PoseStream => {
    const stream = new PoseStream();
    for (let index = 0; index < 60; index += 1)
      stream.push({ time_s: 100 + index / 30, joints_rad: [index / 30] }, index / 30 + jitter(index));
    return stream;
  };
  it("says nothing before the first one", () => {
    expect(new PoseStream().at(1)).toBeNull();
  });
  it("goes evenly through a jittering network", () => {
    const stream = fed((index) => (index % 3) * 0.015);
    const seen = [0, 1, 2, 3, 4, 5].map((step) => stream.at(1.7 + step * 0.016)?.[0] as number);
    const steps = seen.slice(1).map((value, index) => value - (seen[index] as number));
    for (const step of steps) expect(step).toBeCloseTo(0.016, 3);
  });
  it("holds the last pose when nothing comes", () => {
    expect(fed(() => 0).at(50)?.[0]).toBeCloseTo(59 / 30, 6);
  });
  it("begins anew with another robot's clock", () => {
    const stream = fed(() => 0);
    stream.push({ time_s: 5, joints_rad: [7] }, 2.1);
    expect(stream.at(2.1)).toEqual([7]);
  });
  it("knows when it has gone silent", () => {
    const stream = fed(() => 0);
    expect(stream.alive(2.1)).toBe(true);
    expect(stream.alive(9)).toBe(false);
  });
});
