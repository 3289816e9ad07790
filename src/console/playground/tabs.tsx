import type { Signal } from '@preact/signals';
import type { ComponentChildren, RefObject } from 'preact';
import { useRef } from 'preact/hooks';

/** A tab with its panel. */
export interface Tab {
  readonly title: string;
  readonly panel?: RefObject<HTMLDivElement | null>;
  /** Whether the panel is rendered also while it is not shown. */
  readonly stays?: boolean;
  readonly content: () => ComponentChildren;
}

/** The tab chosen last, and the last chosen one other than the first. */
export interface ChosenTabs {
  readonly current: number;
  readonly other: number;
}

interface TabsProps {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly chosen: Signal<ChosenTabs>;
  /** Whether the first panel is always shown, beside the last chosen one of the others. */
  readonly hasRoom: boolean;
}

/** Tabs by the ARIA practices: one tab is in the tab order, and the arrow keys move between all. */
export function Tabs({ label, tabs, chosen, hasRoom }: TabsProps) {
  const list = useRef<HTMLDivElement>(null);
  const { current, other } = chosen.value;
  const choose = (index: number): void => {
    chosen.value = { current: index, other: index === 0 ? other : index };
  };
  const move = (event: KeyboardEvent, index: number): void => {
    const last = tabs.length - 1;
    const targets: Readonly<Record<string, number>> = {
      ArrowLeft: index === 0 ? last : index - 1,
      ArrowRight: index === last ? 0 : index + 1,
      Home: 0,
      End: last,
    };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    choose(target);
    (list.current?.children[target] as HTMLElement | undefined)?.focus();
  };
  return (
    <>
      <div ref={list} class="tabs" role="tablist" aria-label={label}>
        {tabs.map(({ title }, index) => (
          <button
            key={title}
            id={idOf(title)}
            type="button"
            role="tab"
            aria-controls={`${idOf(title)}-panel`}
            aria-selected={index === current}
            tabIndex={index === current ? 0 : -1}
            onClick={() => choose(index)}
            onKeyDown={(event) => move(event, index)}
          >
            {title}
          </button>
        ))}
      </div>
      {tabs.map(({ title, panel, stays = false, content }, index) => {
        const isShown = index === current || (hasRoom && (index === 0 || index === other));
        return (
          <div
            key={title}
            ref={panel}
            id={`${idOf(title)}-panel`}
            class="pane"
            role="tabpanel"
            aria-labelledby={idOf(title)}
            tabIndex={0}
            hidden={!isShown}
          >
            {(isShown || stays) && content()}
          </div>
        );
      })}
    </>
  );
}

function idOf(title: string): string {
  return `tab-${title.toLowerCase()}`;
}
