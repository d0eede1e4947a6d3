/** The canvas of the 3D view, and the quality that the browser can draw in. */

export type Quality = "high" | "low";

/** A canvas with its context and quality. */
export interface Renderer {
  canvas: HTMLCanvasElement;
  gl: WebGL2RenderingContext;
  quality: Quality;
  /** Whether the processor draws, because there is no graphics card. */
  software: boolean;
}

function context(canvas: HTMLCanvasElement, antialias: boolean): WebGL2RenderingContext {
  const gl = canvas.getContext("webgl2", { alpha: true, antialias, powerPreference: "high-performance" });
  if (!gl) throw new Error("no WebGL");
  return gl;
}

/**
 * Return a canvas and its quality. A browser without a graphics card gets low quality, whatever is requested:
 * high quality would block the page, and STOP with it. The canvas that was probed is used then, because making
 * another takes long there.
 */
export function chooseRenderer(make: () => HTMLCanvasElement, requested: Quality | null): Renderer {
  const canvas = make();
  const gl = context(canvas, false);
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  const name = String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  const software = /swiftshader|llvmpipe|software|basic render/i.test(name);
  if (requested === "low" || software) return { canvas, gl, quality: "low", software };
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  const better = make();
  return { canvas: better, gl: context(better, true), quality: "high", software };
}
