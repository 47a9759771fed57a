/** Components that several views use. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useApp } from "../app";
import type { Kind } from "../model/route";

/** A choice between a few values, as a row of radio buttons. */
export function Choice<T extends string>(props: {
  label: string;
  choices: readonly T[];
  value: T;
  onChoose: (value: T) => void;
}) {
  return (
    <fieldset class="choice">
      <legend>{props.label}</legend>
      {props.choices.map((choice) => (
        <label key={choice}>
          <input
            type="radio"
            name={props.label}
            checked={choice === props.value}
            onChange={() => props.onChoose(choice)}
          />
          <span>{choice === "cpu" ? "CPU" : choice}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** A link that selects an object. */
export function Ref({
  kind,
  id,
  children,
}: {
  kind: Kind;
  id: string;
  children?: ComponentChildren;
}) {
  const app = useApp();
  if (id === "") return null;
  return (
    <a class="ref" href={app.link({ selection: { kind, id } })}>
      {children ?? id}
    </a>
  );
}

/** A usage bar with a text; only the text if the whole is unknown. */
export function Bar(props: {
  part: number;
  whole: number | null;
  also?: number;
  text: string;
  over?: boolean;
}) {
  if (props.whole === null) return <span class="bar">{props.text}</span>;
  const whole = Math.max(props.whole, 1e-9);
  const width = (value: number) => `${Math.min(100, (100 * value) / whole)}%`;
  const style = { "--part": width(props.part), "--also": width(props.part + (props.also ?? 0)) };
  return (
    <span class={`bar${props.over ? " over" : ""}`}>
      <span class="track" style={style as Record<string, string>} aria-hidden="true">
        <i class="also" />
        <i class="part" />
      </span>
      <span class="words">{props.text}</span>
    </span>
  );
}

/** A command line with a button that copies it. */
export function Command({ line }: { line: string }) {
  const [copied, setCopied] = useState(false);
  const app = useApp();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(line);
      setCopied(true);
      app.announcement.value = "The command was copied.";
    } catch {
      app.announcement.value =
        "The browser does not allow the page to copy: select the text and copy it yourself.";
    }
  };
  return (
    <div class="command">
      <code>{line}</code>
      <button type="button" onClick={copy}>
        {copied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}

export function Facts({ facts }: { facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts
        .filter(([, what]) => what !== "" && what !== null && what !== undefined)
        .map(([name, what]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{what}</dd>
          </div>
        ))}
    </dl>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}
