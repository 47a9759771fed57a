/** A table whose rows can be selected with the arrow keys; one row at a time is in the tab order. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

export interface Column<T> {
  name: string;
  cell: (row: T) => ComponentChildren;
  head?: boolean;
}

export function Table<T>(props: {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  id: (row: T) => string;
  order?: string;
  onOrder?: (name: string) => void;
  chosen?: string | null;
  onOpen: (row: T) => void;
}) {
  const [current, setCurrent] = useState(0);
  const at = Math.min(current, props.rows.length - 1);
  return (
    <div class="scroll">
      <table aria-label={props.label}>
        <thead>
          <tr>
            {props.columns.map((column) => (
              <th
                key={column.name}
                scope="col"
                aria-sort={column.name === props.order ? "ascending" : undefined}
              >
                {props.onOrder ? (
                  <button type="button" onClick={() => props.onOrder?.(column.name)}>
                    {column.name}
                  </button>
                ) : (
                  column.name
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row, i) => (
            <tr
              key={props.id(row)}
              tabIndex={i === at ? 0 : -1}
              aria-selected={props.chosen === props.id(row) ? "true" : undefined}
              class={props.chosen === props.id(row) ? "chosen" : ""}
              onFocus={() => setCurrent(i)}
              onClick={() => props.onOpen(row)}
              onKeyDown={(event) => {
                if (event.key === "Enter" && event.target === event.currentTarget)
                  props.onOpen(row);
                else if (!moveFocus(event)) return;
                event.preventDefault();
              }}
            >
              {props.columns.map((column) =>
                column.head ? (
                  <th key={column.name} scope="row">
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.name}>{column.cell(row)}</td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Move the focus to a sibling with the arrow keys, Home and End; return whether it was such a key. */
export function moveFocus(event: KeyboardEvent & { currentTarget: HTMLElement }): boolean {
  const row = event.currentTarget;
  const to = {
    ArrowDown: row.nextElementSibling,
    ArrowUp: row.previousElementSibling,
    Home: row.parentElement?.firstElementChild,
    End: row.parentElement?.lastElementChild,
  }[event.key];
  if (to === undefined) return false;
  (to as HTMLElement | null)?.focus();
  return true;
}
