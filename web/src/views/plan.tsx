/** The last and the next plan of the autoscaler: steps, reasons and cost. */
import { useApp } from "../app";
import { age, plural, price } from "../model/formats";
import type { Plan, Step } from "../model/rows";
import { Empty, Ref } from "./parts";

export function PlanView() {
  const { store } = useApp();
  store.versions.plans.value;
  const plans = [...store.tables.plans.values()];
  if (plans.length === 0)
    return (
      <Empty>
        No plan: the cluster has no autoscaler status, and no node groups are known. Declare them
        with bayplan ui --groups FILE.
      </Empty>
    );
  return (
    <section class="plans" aria-label="The autoscaler's plans">
      {plans.map((plan) => (
        <PlanBox key={plan.id} plan={plan} />
      ))}
    </section>
  );
}

function PlanBox({ plan }: { plan: Plan }) {
  const { store } = useApp();
  const isEmpty = !plan.steps.length && !plan.pending.length && !plan.removals.length;
  return (
    <article class="plan">
      <h2>
        {plan.title || (plan.id === "last" ? "Last plan" : "Next plan")}
        <small>
          {plan.made && `computed ${age(plan.made, store.time.value)} ago`}
          {plan.cost !== null && plan.cost !== 0 && ` · ${price(plan.cost, true)}`}
        </small>
      </h2>
      {isEmpty && <Empty>No nodes are added or removed.</Empty>}
      {plan.steps.length > 0 && <Steps steps={plan.steps} />}
      {plan.removals.length > 0 && (
        <>
          <h3>Nodes to remove</h3>
          <ul class="lines">
            {plan.removals.map((removal) => (
              <li key={removal.node}>
                <Ref kind="node" id={removal.node ?? ""} /> <span>{removal.why}</span>
              </li>
            ))}
          </ul>
        </>
      )}
      {plan.pending.length > 0 && (
        <>
          <h3>Pods that stay pending</h3>
          <ul class="lines">
            {plan.pending.map((row, i) => (
              <li key={`${i} ${row.why}`}>
                <b>{podsText(row.pods)}</b> <span>{row.why}</span>
              </li>
            ))}
          </ul>
        </>
      )}
      {plan.note && <p class="note">{plan.note}</p>}
    </article>
  );
}

function Steps({ steps }: { steps: readonly Step[] }) {
  const { store } = useApp();
  return (
    <ol class="steps">
      {steps.map((step, i) => (
        <li key={`${i} ${step.group}`}>
          <b>{step.what}</b>{" "}
          {step.group && store.tables.groups.has(step.group) ? (
            <Ref kind="group" id={step.group} />
          ) : (
            step.group
          )}
          <span class="small">
            {[
              step.nodes === undefined ? "" : countText(step.nodes, "node"),
              step.pods === undefined ? "" : `for ${podsText(step.pods)}`,
              price(step.cost ?? null, true),
            ]
              .filter(Boolean)
              .join(" · ")}
          </span>
          {step.why && <p>{step.why}</p>}
        </li>
      ))}
    </ol>
  );
}

function podsText(pods: number | string | readonly string[] | undefined): string {
  if (pods === undefined) return "";
  if (typeof pods === "string") return pods;
  if (typeof pods === "number") return plural(pods, "pod");
  return pods.length > 3 ? plural(pods.length, "pod") : pods.join(", ");
}

function countText(of: number | readonly string[], noun: string): string {
  return plural(typeof of === "number" ? of : of.length, noun);
}
