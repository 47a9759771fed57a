/** The explanation of a pending pod: the reason, the result of each node, and fixes with commands. */
import { useEffect, useState } from "preact/hooks";
import { useApp } from "../app";
import { plural } from "../model/formats";
import {
  type Explanation,
  type Fix,
  getExplanation,
  type NodeResult,
  type Preemption,
  type QueueReason,
} from "../net/api";
import { Command, Facts, Ref } from "./parts";

type Result = { answer: Explanation } | { problem: string } | null;

export function ExplanationOf({ pod }: { pod: string }) {
  const app = useApp();
  const [result, setResult] = useState<Result>(null);
  const [refreshes, setRefreshes] = useState(0);
  const settled = app.player.settled.value;
  // Taken now: when the effect runs, a later state without the pod may be shown.
  const after = app.shownSeq();
  useEffect(() => {
    const stop = new AbortController();
    setResult(null);
    getExplanation(pod, after, stop.signal)
      .then((answer) => setResult({ answer }))
      .catch((error: unknown) => {
        if (!stop.signal.aborted) setResult({ problem: (error as Error).message });
      });
    return () => stop.abort();
  }, [pod, settled, refreshes]);
  return (
    <section class="explanation" aria-label="Explanation" aria-busy={result === null}>
      <h3>
        Why it is pending
        <button type="button" onClick={() => setRefreshes(refreshes + 1)}>
          Refresh
        </button>
      </h3>
      {result === null && <p class="empty">Computing…</p>}
      {result && "problem" in result && <p class="warn">{result.problem}</p>}
      {result && "answer" in result && <Answer answer={result.answer} />}
    </section>
  );
}

function Answer({ answer }: { answer: Explanation }) {
  const { queue } = answer;
  return (
    <>
      {queue && <QueueStatus queue={queue} />}
      {answer.fits && answer.node && (
        <p class="lead">
          The pod fits, and would be scheduled to <Ref kind="node" id={answer.node} />.
        </p>
      )}
      {answer.why && <p class="lead">{answer.why}</p>}
      {answer.refusedBefore && <p>{answer.refusedBefore.reasons.join("; ")}</p>}
      {answer.message && <p class="message">{answer.message}</p>}
      {answer.unjudged && <p class="note">{answer.unjudged}</p>}
      {answer.preemption?.node && <PreemptionInfo preemption={answer.preemption} />}
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
function PreemptionInfo({ preemption }: { preemption: Preemption }) {
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

/** Why the queue has not admitted the pod group. */
function QueueStatus({ queue }: { queue: QueueReason }) {
  const requests = Object.entries(queue.asksFor ?? {}).map(([name, amount]) => `${amount} ${name}`);
  return (
    <>
      <p class="lead">{queue.waitsFor || "The queue has not admitted the pod group yet."}</p>
      <Facts
        facts={[
          ["Queue", <Ref key="queue" kind="queue" id={queue.queue ?? ""} />],
          ["Pod group", queue.group],
          ["Position", queue.position],
          ["Requests", requests.join(", ")],
        ]}
      />
    </>
  );
}

const RISKS: Record<string, string> = {
  evicts: "A running pod is evicted.",
  unbalances: "Pods are spread less evenly.",
  "relaxes-a-rule": "A constraint is removed.",
  costs: "Costs increase.",
  restarts: "All pods of the workload are replaced, including running ones.",
  "runs-with-less": "The pod gets fewer resources than it requested.",
  "opens-a-node": "Other pods may be scheduled to that node too.",
  overloads: "The node may be overloaded.",
  "needs-manual-steps": "Manual steps are needed besides the command.",
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

interface ResultGroup {
  text: string;
  fits: boolean;
  nodes: NodeResult[];
}

/** Group nodes with the same result, the largest group first. */
export function groupByResult(nodes: readonly NodeResult[]): ResultGroup[] {
  const groups = new Map<string, ResultGroup>();
  for (const node of nodes) {
    const text = node.fits ? "The pod fits" : `${node.plugin}: ${(node.reasons ?? []).join("; ")}`;
    const group = groups.get(text) ?? { text, fits: node.fits, nodes: [] };
    group.nodes.push(node);
    groups.set(text, group);
  }
  return [...groups.values()].sort((a, b) => b.nodes.length - a.nodes.length);
}

function NodeGroups({ nodes }: { nodes: readonly NodeResult[] }) {
  const groups = groupByResult(nodes);
  if (groups.length === 0) return null;
  return (
    <>
      <h4>Results by node</h4>
      {groups.map((group) => (
        <details key={group.text} class={group.fits ? "fits" : ""}>
          <summary>
            <b>{plural(group.nodes.length, "node")}</b> {group.text}
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
