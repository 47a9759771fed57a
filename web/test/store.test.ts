import assert from "node:assert/strict";
import { test } from "node:test";
import { reader } from "../src/model/rows";
import { Store } from "../src/model/store";
import { node, pod, rowOf, state } from "./builders";

test("a row is read by the names of its columns, in whatever order they come", () => {
  const read = reader("pods", ["unknown", "cpu", "id"]);
  const made = read([1, 250, "ns/p"]);
  assert.equal(made.id, "ns/p");
  assert.equal(made.cpu, 250);
  assert.equal(made.state, "running");
});

test("a value of another kind than the column's is passed over", () => {
  const read = reader("nodes", ["id", "taints", "cpu"]);
  const made = read(["n", "not a list", { deep: 1 }]);
  assert.deepEqual(made.taints, []);
  assert.equal(made.cpu, 0);
});

test("a change sets whole rows, drops others, and moves the sums of their bays", () => {
  const store = new Store();
  const pods = [pod("a", { node: "n1" }), pod("b", { node: "n1", cpu: 1500 })];
  store.replace(state({ nodes: [node("n1"), node("n2")], pods }));
  assert.equal(store.usage.of("n1").cpu, 2000);

  store.apply({
    seq: 2,
    time: "2026-01-01T00:00:01Z",
    set: { pods: [rowOf(pod("a", { node: "n2", cpu: 700 }))] },
    drop: { pods: ["default/b"] },
  });
  assert.equal(store.usage.of("n1").cpu, 0);
  assert.equal(store.usage.of("n1").pods.size, 0);
  assert.equal(store.usage.of("n2").cpu, 700);
  assert.equal(store.seq, 2);
});

test("a change that is already known is passed over", () => {
  const store = new Store();
  store.replace(state({ pods: [pod("a", { node: "n" })] }, 5));
  store.apply({ seq: 5, time: "", drop: { pods: ["default/a"] } });
  assert.equal(store.tables.pods.size, 1);
});

test("pods that have ended use nothing, and pods assigned to an upcoming node are in its bay", () => {
  const store = new Store();
  const done = pod("d", { node: "n", state: "done" });
  const meant = pod("m", { upcoming: "next-1", state: "waiting" });
  store.replace(state({ pods: [done, meant] }));
  assert.equal(store.usage.of("n").cpu, 0);
  assert.equal(store.usage.of("next-1").pods.size, 1);
});

test("only what moves bays asks for a new layout", () => {
  const store = new Store();
  store.replace(state({ nodes: [node("n")], pods: [pod("a", { node: "n" })] }));
  const before = store.shape.value;
  store.apply({ seq: 2, time: "", set: { nodes: [rowOf(node("n", { cordoned: true }))] } });
  assert.equal(store.shape.value, before);
  store.apply({ seq: 3, time: "", set: { nodes: [rowOf(node("n", { cpu: 8000 }))] } });
  assert.equal(store.shape.value, before + 1);
});

test("any order of changes ends with the sums of what is there", () => {
  const store = new Store();
  store.replace(state({ nodes: [node("n0"), node("n1")], pods: [pod("p0", { node: "n0" })] }));
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed % below;
  };
  for (let seq = 2; seq < 400; seq++) {
    const id = `p${random(20)}`;
    const row = pod(id, { node: ["n0", "n1", ""][random(3)] as string, cpu: 100 * random(9) });
    if (random(4) === 0) store.apply({ seq, time: "", drop: { pods: [row.id] } });
    else store.apply({ seq, time: "", set: { pods: [rowOf(row)] } });
  }
  for (const name of ["n0", "n1"]) {
    const here = [...store.tables.pods.values()].filter((one) => one.node === name);
    assert.equal(store.usage.of(name).pods.size, here.length);
    assert.equal(
      store.usage.of(name).cpu,
      here.reduce((sum, one) => sum + one.cpu, 0),
    );
  }
});

test("another format is refused with an error that names it", () => {
  const store = new Store();
  assert.throws(() => store.replace({ ...state({}), format: 9 }), /format 9/);
});
