/** The bar of a recording: play and pause, a slider, marks, and charts over time. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { type App, useApp } from "../app";
import { position } from "../model/formats";
import { isRecording } from "../model/store";
import type { Timeline } from "../net/api";
import { SPEEDS } from "../net/player";

const MOST_MARKS = 500;

export function ReplayBar() {
  const app = useApp();
  const { player, store } = app;
  const recorded = store.loaded.value && isRecording(store.source.value);
  useEffect(() => {
    if (recorded) void player.open();
  }, [recorded]);
  const timeline = player.timeline.value;
  if (!recorded || timeline === null) {
    return player.problem.value ? <p class="warn">{player.problem.value}</p> : null;
  }
  const at = player.position.value;
  return (
    <section class="replay" aria-label="Recording">
      <button type="button" class="play" onClick={() => app.playOrPause()}>
        {player.playing.value ? "Pause" : "Play"}
      </button>
      <div class="line">
        <Series app={app} timeline={timeline} />
        <Marks app={app} timeline={timeline} />
        <input
          type="range"
          min={0}
          max={timeline.seconds}
          step={Math.max(0.1, timeline.seconds / 2000)}
          value={at}
          aria-label="Time in the recording"
          aria-valuetext={`${position(at)} of ${position(timeline.seconds)}`}
          onInput={(event) => app.seek(Number(event.currentTarget.value))}
        />
      </div>
      <ul class="labels">
        {SERIES.map((name) => (
          <li key={name} class={name}>
            {LABELS[name]}
          </li>
        ))}
      </ul>
      <output>
        {position(at)} / {position(timeline.seconds)}
      </output>
      <label class="speed">
        Speed
        <select
          value={String(player.speed.value)}
          onChange={(event) => (player.speed.value = Number(event.currentTarget.value))}
        >
          {SPEEDS.map((speed) => (
            <option key={speed} value={String(speed)}>
              {speed}×
            </option>
          ))}
        </select>
      </label>
      {player.problem.value && <p class="warn">{player.problem.value}</p>}
    </section>
  );
}

const SHAPES: Record<string, string> = {
  warning: "▲",
  "scale-up": "+",
  "scale-down": "−",
  node: "■",
  queue: "◆",
};

function Marks({ app, timeline }: { app: App; timeline: Timeline }) {
  return (
    <div class="marks">
      {timeline.marks.slice(0, MOST_MARKS).map((mark, i) => {
        const style = { "--at": `${(100 * mark.at) / Math.max(timeline.seconds, 1e-9)}%` };
        return (
          <button
            type="button"
            tabIndex={-1}
            key={`${i} ${mark.at}`}
            class={`at ${mark.kind}`}
            style={style as Record<string, string>}
            title={`${position(mark.at)} ${mark.text}`}
            aria-label={`${position(mark.at)} ${mark.text}`}
            onClick={() => app.seek(mark.at)}
          >
            {SHAPES[mark.kind] ?? "·"}
          </button>
        );
      })}
    </div>
  );
}

const SERIES = ["waiting", "running", "nodes"] as const;
const LABELS: Record<string, string> = {
  waiting: "pending pods",
  running: "running pods",
  nodes: "nodes",
};

/** Charts of pending pods, running pods and nodes, each on its own scale, with different dashes. */
function Series({ app, timeline }: { app: App; timeline: Timeline }) {
  const box = useRef<HTMLDivElement>(null);
  const theme = app.theme.value;
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const make = () => plot(element, timeline);
    let chart = make();
    const watch = new ResizeObserver(() => {
      chart.setSize({ width: element.clientWidth, height: element.clientHeight });
    });
    watch.observe(element);
    return () => {
      watch.disconnect();
      chart.destroy();
      chart = null as never;
    };
  }, [timeline, theme]);
  return <div ref={box} class="series" aria-hidden="true" />;
}

function plot(element: HTMLElement, timeline: Timeline): uPlot {
  const style = getComputedStyle(element);
  const named = SERIES.filter((name) => timeline.series[name]?.length);
  const tables = named.map((name) => {
    const points = timeline.series[name] ?? [];
    return [points.map(([at]) => at), points.map(([, value]) => value)] as uPlot.AlignedData;
  });
  const data = tables.length ? uPlot.join(tables) : ([[0]] as uPlot.AlignedData);
  const dashes: Record<string, number[]> = { waiting: [], running: [6, 3], nodes: [2, 3] };
  const options: uPlot.Options = {
    width: element.clientWidth,
    height: element.clientHeight,
    padding: [2, 0, 2, 0],
    cursor: { show: false },
    legend: { show: false },
    scales: { x: { time: false, range: [0, timeline.seconds || 1] } },
    axes: [{ show: false }, { show: false }],
    series: [
      {},
      ...named.map((name) => ({
        label: name,
        scale: name,
        stroke: style.getPropertyValue(`--series-${name}`).trim(),
        dash: dashes[name] ?? [],
        width: 1.5,
        spanGaps: true,
        paths: uPlot.paths.stepped?.({ align: 1 }) as uPlot.Series.PathBuilder,
        points: { show: false },
      })),
    ],
  };
  return new uPlot(options, data, element);
}
