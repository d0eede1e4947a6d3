/** What the 3D view is drawn on, as well as the browser can. */

export type Quality = "high" | "low";

/** A canvas to draw on, and how well. */
export interface Easel {
  canvas: HTMLCanvasElement;
  gl: WebGL2RenderingContext;
  quality: Quality;
  /** Whether the processor draws, for want of a graphics card. */
  bare: boolean;
}

function context(canvas: HTMLCanvasElement, antialias: boolean): WebGL2RenderingContext {
  const gl = canvas.getContext("webgl2", { alpha: true, antialias, powerPreference: "high-performance" });
  if (!gl) throw new Error("no WebGL");
  return gl;
}

/**
 * Return what to draw on. A browser without a graphics card gets the low quality, whatever is wanted:
 * the high one would hold up the page, and STOP with it. The canvas that was asked about it is used,
 * since making another takes it long.
 */
export function easel(make: () => HTMLCanvasElement, wanted: Quality | null): Easel {
  const canvas = make();
  const gl = context(canvas, false);
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  const name = String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  const bare = /swiftshader|llvmpipe|software|basic render/i.test(name);
  if (wanted === "low" || bare) return { canvas, gl, quality: "low", bare };
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  const better = make();
  return { canvas: better, gl: context(better, true), quality: "high", bare };
}
