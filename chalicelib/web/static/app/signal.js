// A value that parts of the page watch: each watcher is drawn anew when it changes.
import { useLayoutEffect, useReducer } from "./ui.js";

/** A watched value: `value` reads it, `set` changes it and tells all watchers, `watch(f)` answers the function that ends it. */
export function signal(first) {
  const watchers = new Set();
  const self = {
    value: first,
    set(next) {
      self.value = next;
      for (const watcher of [...watchers]) watcher(next);
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
  return self;
}

/** The value of a signal, and a drawing of the component whenever it changes. */
export function useSignal(of) {
  const [, draw] = useReducer((count) => count + 1, 0);
  // Before anything else can happen: a change between the drawing and the watching would not be seen.
  useLayoutEffect(() => of.watch(draw), [of]);
  return of.value;
}
