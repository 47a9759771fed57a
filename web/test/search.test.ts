import assert from "node:assert/strict";
import { test } from "node:test";
import { find, matchingNodes, natural } from "../src/model/search";
import { Store } from "../src/model/store";
import { node, pod, state } from "./builders";

function store(): Store {
  const made = new Store();
  made.replace(
    state({
      nodes: [
        node("web-1", { zone: "a" }),
        node("web-10"),
        node("db-1", { taints: ["gpu=true:NoSchedule"] }),
      ],
      pods: [
        pod("shop/web-abc", { node: "db-1", owner: "Deployment web" }),
        pod("shop/stuck-1", { node: "web-10", state: "stuck" }),
      ],
    }),
  );
  return made;
}

test("names that begin with the words come first, nodes before pods", () => {
  const ids = find(store(), "web").map((one) => one.id);
  assert.deepEqual(ids, ["web-1", "web-10", "shop/web-abc"]);
});

test("every word must be found, and a field can be asked for", () => {
  assert.deepEqual(
    find(store(), "web 10").map((one) => one.id),
    ["web-10"],
  );
  assert.deepEqual(
    find(store(), "taint:gpu").map((one) => one.id),
    ["db-1"],
  );
  assert.deepEqual(
    find(store(), "state:stuck").map((one) => one.id),
    ["shop/stuck-1"],
  );
  assert.deepEqual(find(store(), "nothing:here"), []);
});

test("a bay matches by its node or by a pod in it", () => {
  assert.deepEqual(matchingNodes(store(), "stuck"), new Set(["web-10"]));
  assert.deepEqual(matchingNodes(store(), "ns:shop"), new Set(["db-1", "web-10"]));
  assert.equal(matchingNodes(store(), "  "), null);
});

test("numbers in names are counted, not spelled", () => {
  assert.deepEqual(["n10", "n2"].sort(natural), ["n2", "n10"]);
});

test("the state of a pod is found as it is shown, and as the server names it", () => {
  const made = new Store();
  made.replace(state({ pods: [pod("a", { state: "leaving" }), pod("b", { state: "waiting" })] }));
  const ids = (query: string) => find(made, query).map((one) => [one.id, one.hint]);
  assert.deepEqual(ids("state:terminating"), [["default/a", "terminating"]]);
  assert.deepEqual(ids("state:leaving"), [["default/a", "terminating"]]);
  assert.deepEqual(ids("state:pending"), [["default/b", "pending"]]);
});
