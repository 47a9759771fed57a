import assert from "node:assert/strict";
import { test } from "node:test";
import { fit, fromLook, reveal, toLook, visible, zoom } from "../src/bays/camera";
import { detailAt, fullness } from "../src/bays/detail";
import { BAY, bayAt, baysWithin, HEAD, layOut, neighbour, overlaps } from "../src/bays/layout";
import { boxAt, stackPods } from "../src/bays/stack";
import type { Node } from "../src/model/rows";
import { Store } from "../src/model/store";
import { node, pod, state } from "./builders";

const WINDOW = { w: 1280, h: 800 };

function fleet(count: number): Node[] {
  const zone = (i: number) => ["a", "b", "c"][i % 3] as string;
  const group = (i: number) => (i % 5 === 0 ? "big" : "small");
  const sized = (i: number) =>
    node(`n${i}`, { zone: zone(i), group: group(i), cpu: i % 5 ? 4000 : 8000 });
  return Array.from({ length: count }, (_, i) => sized(i));
}

test("no two bays overlap, and each lies within its area and its zone", () => {
  const layout = layOut(fleet(100), ["empty"], "cpu", WINDOW);
  assert.equal(layout.bays.size, 100);
  for (const area of layout.areas) {
    for (const bay of area.bays) {
      assert.ok(bay.x >= area.x && bay.x + bay.w <= area.x + area.w);
      assert.ok(bay.y >= area.y && bay.y + bay.h <= area.y + area.h);
    }
    for (const other of layout.areas) assert.ok(area === other || !overlaps(area, other));
  }
  const all = [...layout.bays.values()];
  all.forEach((bay, i) => {
    for (const other of all.slice(i + 1)) assert.ok(!overlaps(bay, other));
  });
});

test("a group without nodes has an area", () => {
  const layout = layOut(fleet(3), ["empty"], "cpu", WINDOW);
  assert.ok(layout.areas.some((area) => area.group === "empty" && area.bays.length === 0));
});

test("a node twice as large is drawn twice as high", () => {
  const layout = layOut(fleet(20), [], "cpu", WINDOW);
  const height = (id: string) => (layout.bays.get(id)?.h ?? 0) - HEAD;
  assert.equal(height("n5"), 2 * height("n1"));
});

test("every bay is found at its own middle, and nothing is found beside it", () => {
  const layout = layOut(fleet(60), [], "cpu", WINDOW);
  for (const bay of layout.bays.values()) {
    assert.equal(bayAt(layout, bay.x + bay.w / 2, bay.y + bay.h / 2), bay);
    assert.notEqual(bayAt(layout, bay.x - 2, bay.y + bay.h / 2), bay);
  }
  assert.equal(bayAt(layout, -50, -50), null);
});

test("what is drawn in a window is exactly the bays that overlap it", () => {
  const layout = layOut(fleet(400), [], "cpu", WINDOW);
  const view = { x: layout.w * 0.3, y: layout.h * 0.2, w: layout.w * 0.3, h: layout.h * 0.4 };
  const drawn = new Set(layout.areas.flatMap((area) => [...baysWithin(area, view)]));
  for (const bay of layout.bays.values()) {
    if (overlaps(bay, view)) assert.ok(drawn.has(bay), bay.node.id);
  }
  assert.ok(drawn.size < 250);
});

test("arrow keys go to a bay in their direction, and every bay can be reached", () => {
  const layout = layOut(fleet(30), [], "cpu", WINDOW);
  const first = layout.bays.get("n0");
  assert.ok(first);
  const reached = new Set([first]);
  for (const from of reached) {
    for (const [dx, dy] of [
      [1, 0],
      [-1, 0],
      [0, 1],
      [0, -1],
    ] as const) {
      const to = neighbour(layout, from, dx, dy);
      if (to) reached.add(to);
    }
  }
  assert.equal(reached.size, 30);
});

test("5,000 bays fit into the window with titles that can be read", () => {
  const layout = layOut(fleet(5000), [], "cpu", WINDOW);
  const camera = fit(layout, WINDOW);
  assert.ok(layout.w * camera.scale <= WINDOW.w && layout.h * camera.scale <= WINDOW.h);
  assert.ok(layout.title * camera.scale > 9);
  assert.ok(BAY * camera.scale > 3);
});

test("zooming keeps what lies under the pointer, and the camera of an address is restored", () => {
  const camera = { x: 10, y: 20, scale: 0.5 };
  const near = zoom(camera, 2, 100, 50, 0.01);
  assert.equal(near.x + 100 / near.scale, camera.x + 100 / camera.scale);
  const back = fromLook(toLook(near, WINDOW), WINDOW);
  assert.ok(Math.abs(back.x - near.x) < 1e-6 && back.scale === near.scale);
});

test("a bay that is revealed lies wholly in the window", () => {
  const layout = layOut(fleet(500), [], "cpu", WINDOW);
  const bay = layout.bays.get("n499");
  assert.ok(bay);
  const view = visible(reveal({ x: 0, y: 0, scale: 2 }, bay, WINDOW, 120), WINDOW);
  assert.ok(view.x <= bay.x && bay.x + bay.w <= view.x + view.w);
});

test("detail grows with the zoom", () => {
  assert.deepEqual([0.05, 0.3, 0.6, 2].map(detailAt), ["cell", "bay", "pods", "names"]);
});

test("fullness has ten steps, and an empty node none", () => {
  assert.deepEqual(
    [0, 1, 50, 100, 130].map((used) => fullness(used, 100)),
    [0, 1, 5, 10, 10],
  );
  assert.equal(fullness(1, 0), 0);
});

test("pods are drawn to scale, without overlap, and can be pointed at", () => {
  const store = new Store();
  const sizes = [2000, 1000, 300, 50, 50, 20, 10, 0, 0];
  const pods = sizes.map((cpu, i) => pod(`p${i}`, { node: "n", cpu }));
  store.replace(state({ nodes: [node("n")], pods }));
  const boxes = stackPods(store.usage.of("n"), 4000, "cpu");
  assert.equal(boxes.length, sizes.length);
  for (const box of boxes) {
    if (box.pod.cpu > 0) assert.ok(Math.abs(box.w * box.h - box.pod.cpu / 4000) < 1e-9);
    assert.equal(boxAt(boxes, box.x + box.w / 2, box.y + box.h / 2), box);
    assert.ok(box.y + box.h <= 1 + 1e-9);
  }
});

test("pods with more requests than the node has are still drawn in its bay", () => {
  const store = new Store();
  store.replace(
    state({ pods: [pod("a", { node: "n", cpu: 3000 }), pod("b", { node: "n", cpu: 3000 })] }),
  );
  const boxes = stackPods(store.usage.of("n"), 4000, "cpu");
  assert.ok(Math.abs(boxes.reduce((sum, box) => sum + box.h, 0) - 1) < 1e-9);
});
