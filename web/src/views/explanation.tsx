/** Why a pod is pending: the reason, the result of each node, and fixes with their commands. */
import { useEffect, useState } from "preact/hooks";
import { useApp } from "../app";
import { many } from "../model/words";
import {
  type Explanation,
  type Fix,
  getExplanation,
  type HeldBack,
  type NodeAnswer,
  type Preemption,
} from "../net/api";
import { Command, Facts, Ref } from "./parts";

type Asked = { answer: Explanation } | { problem: string } | null;

export function ExplanationOf({ pod }: { pod: string }) {
  const app = useApp();
  const [asked, setAsked] = useState<Asked>(null);
  const [again, setAgain] = useState(0);
  const rests = app.player.rests.value;
  // Of the state that is drawn now: by the time of the effect, another may be there without the pod.
  const after = app.shown();
  useEffect(() => {
    const stop = new AbortController();
    setAsked(null);
    getExplanation(pod, after, stop.signal)
      .then((answer) => setAsked({ answer }))
      .catch((error: unknown) => {
        if (!stop.signal.aborted) setAsked({ problem: (error as Error).message });
      });
    return () => stop.abort();
  }, [pod, rests, again]);
  return (
    <section class="explanation" aria-label="Explanation" aria-busy={asked === null}>
      <h3>
        Why it is pending
        <button type="button" onClick={() => setAgain(again + 1)}>
          Refresh
        </button>
      </h3>
      {asked === null && <p class="empty">Computing…</p>}
      {asked && "problem" in asked && <p class="warn">{asked.problem}</p>}
      {asked && "answer" in asked && <Answer answer={asked.answer} />}
    </section>
  );
}

function Answer({ answer }: { answer: Explanation }) {
  const held = answer.queue;
  return (
    <>
      {held && <Held queue={held} />}
      {answer.fits && answer.node && (
        <p class="lead">
          It fits: it would be scheduled to <Ref kind="node" id={answer.node} />.
        </p>
      )}
      {answer.why && <p class="lead">{answer.why}</p>}
      {answer.refusedBefore && <p>{answer.refusedBefore.reasons.join("; ")}</p>}
      {answer.message && <p class="message">{answer.message}</p>}
      {answer.unjudged && <p class="note">{answer.unjudged}</p>}
      {answer.preemption?.node && <Preempted preemption={answer.preemption} />}
      {(answer.fixes?.length ?? 0) > 0 && (
        <>
          <h4>Nearest fixes</h4>
          <ol class="fixes">
            {answer.fixes?.map((fix) => (
              <FixBox key={fix.summary} fix={fix} />
            ))}
          </ol>
        </>
      )}
      <NodeGroups nodes={answer.nodes ?? []} />
      {answer.judged?.notes?.map((note) => (
        <p key={note} class="small">
          {note}
        </p>
      ))}
    </>
  );
}

/** The victims of preemption. */
function Preempted({ preemption }: { preemption: Preemption }) {
  return (
    <p>
      Preemption would free capacity on <Ref kind="node" id={preemption.node ?? ""} /> by evicting{" "}
      {preemption.victims.map((pod, i) => (
        <span key={pod}>
          {i > 0 && ", "}
          <Ref kind="pod" id={pod} />
        </span>
      ))}
      .
    </p>
  );
}

/** The reason of the queue for the pod group. */
function Held({ queue }: { queue: HeldBack }) {
  const asks = Object.entries(queue.asksFor ?? {}).map(([name, amount]) => `${amount} ${name}`);
  return (
    <>
      <p class="lead">{queue.waitsFor || "Not admitted by its queue yet."}</p>
      <Facts
        facts={[
          ["Queue", <Ref key="queue" kind="queue" id={queue.queue ?? ""} />],
          ["Group", queue.group],
          ["Position", queue.position],
          ["Requests", asks.join(", ")],
        ]}
      />
    </>
  );
}

const RISKS: Record<string, string> = {
  evicts: "A running pod is evicted.",
  unbalances: "Pods are spread less evenly.",
  "relaxes-a-rule": "A constraint is removed.",
  costs: "It adds cost.",
  restarts: "All pods of the workload are replaced, including running ones.",
  "runs-with-less": "The pod gets fewer resources than it requested.",
  "opens-a-node": "Other pods may be scheduled to that node too.",
  overloads: "The node may be overloaded.",
  "needs-manual-steps": "No command alone is enough.",
};

function FixBox({ fix }: { fix: Fix }) {
  return (
    <li class="fix">
      <b>{fix.summary}</b>
      {fix.steps.map((step) => (
        <div key={step.text}>
          {step.text !== fix.summary && <p>{step.text}</p>}
          {step.command && <Command line={step.command} />}
          {step.risks?.map((risk) => (
            <p key={risk} class="risk">
              ▲ {RISKS[risk] ?? risk}
            </p>
          ))}
        </div>
      ))}
    </li>
  );
}

interface Alike {
  words: string;
  fits: boolean;
  nodes: NodeAnswer[];
}

/** Nodes with the same result; the largest group first. */
export function alike(nodes: readonly NodeAnswer[]): Alike[] {
  const groups = new Map<string, Alike>();
  for (const node of nodes) {
    const words = node.fits ? "It fits" : `${node.plugin}: ${(node.reasons ?? []).join("; ")}`;
    const group = groups.get(words) ?? { words, fits: node.fits, nodes: [] };
    group.nodes.push(node);
    groups.set(words, group);
  }
  return [...groups.values()].sort((a, b) => b.nodes.length - a.nodes.length);
}

function NodeGroups({ nodes }: { nodes: readonly NodeAnswer[] }) {
  const groups = alike(nodes);
  if (groups.length === 0) return null;
  return (
    <>
      <h4>Results by node</h4>
      {groups.map((group) => (
        <details key={group.words} class={group.fits ? "fits" : ""}>
          <summary>
            <b>{many(group.nodes.length, "node")}</b> {group.words}
          </summary>
          <ul class="pods">
            {group.nodes.slice(0, 100).map((node) => (
              <li key={node.name}>
                <Ref kind="node" id={node.name} />
                <small>{node.details?.join("; ")}</small>
              </li>
            ))}
          </ul>
          {group.nodes.length > 100 && <p class="small">and {group.nodes.length - 100} more</p>}
        </details>
      ))}
    </>
  );
}
