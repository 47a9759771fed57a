/** The camera: which part of the drawing the window shows, as a corner and a scale. */
import { BAY, type Box } from "./layout";

export interface Camera {
  /** The point of the drawing at the window's upper left corner. */
  x: number;
  y: number;
  /** Pixels per unit of the drawing. */
  scale: number;
}

export interface Size {
  w: number;
  h: number;
}

const MARGIN = 24;
const MAX_SCALE = 6;

/** Return the camera that shows all of it, centred. */
export function fit(all: Box, window: Size): Camera {
  const across = (window.w - 2 * MARGIN) / Math.max(1, all.w);
  const down = (window.h - 2 * MARGIN) / Math.max(1, all.h);
  const scale = Math.max(0.001, Math.min(across, down, 1.6));
  return {
    x: all.x + all.w / 2 - window.w / 2 / scale,
    y: all.y + all.h / 2 - window.h / 2 / scale,
    scale,
  };
}

export function pan(camera: Camera, dx: number, dy: number): Camera {
  return { ...camera, x: camera.x - dx / camera.scale, y: camera.y - dy / camera.scale };
}

/** Zoom by a factor; the point of the window stays at its place. */
export function zoom(
  camera: Camera,
  factor: number,
  px: number,
  py: number,
  least: number,
): Camera {
  const scale = Math.min(MAX_SCALE, Math.max(least, camera.scale * factor));
  return {
    x: camera.x + px / camera.scale - px / scale,
    y: camera.y + py / camera.scale - py / scale,
    scale,
  };
}

/** Limit a camera, so that a part of the drawing stays in the window. */
export function clamped(camera: Camera, all: Box, window: Size): Camera {
  const clamp = (at: number, start: number, length: number, room: number) => {
    const slack = room * 0.5;
    return Math.min(Math.max(at, start - room + slack), start + length - slack);
  };
  return {
    ...camera,
    x: clamp(camera.x, all.x, all.w, window.w / camera.scale),
    y: clamp(camera.y, all.y, all.h, window.h / camera.scale),
  };
}

/** Move the camera as little as possible so that the box is in the window, and can be read. */
export function reveal(camera: Camera, box: Box, window: Size, bay: number | null): Camera {
  const scale = bay === null ? camera.scale : Math.max(camera.scale, bay / BAY);
  const next = scale === camera.scale ? camera : centred(box, scale, window);
  const room = { w: window.w / scale, h: window.h / scale };
  const edge = Math.min(MARGIN / scale, room.w / 8, room.h / 8);
  return {
    x: within(next.x, box.x - edge, box.w + 2 * edge, room.w),
    y: within(next.y, box.y - edge, box.h + 2 * edge, room.h),
    scale,
  };
}

function centred(box: Box, scale: number, window: Size): Camera {
  return {
    x: box.x + box.w / 2 - window.w / 2 / scale,
    y: box.y + box.h / 2 - window.h / 2 / scale,
    scale,
  };
}

function within(at: number, start: number, length: number, room: number): number {
  if (start < at) return start;
  return start + length > at + room ? start + length - room : at;
}

/** Return the visible part of the drawing. */
export function visible(camera: Camera, window: Size): Box {
  return { x: camera.x, y: camera.y, w: window.w / camera.scale, h: window.h / camera.scale };
}

/** Return the camera in the format of the address: the centre in bays, and a bay's width in pixels. */
export function toLook(camera: Camera, window: Size): [number, number, number] {
  const view = visible(camera, window);
  return [(view.x + view.w / 2) / BAY, (view.y + view.h / 2) / BAY, camera.scale * BAY];
}

export function fromLook(look: readonly [number, number, number], window: Size): Camera {
  const scale = Math.min(MAX_SCALE, look[2] / BAY);
  return {
    x: look[0] * BAY - window.w / 2 / scale,
    y: look[1] * BAY - window.h / 2 / scale,
    scale,
  };
}
