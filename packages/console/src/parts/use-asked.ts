import { useCallback, useEffect, useState } from 'preact/hooks';
import { ask } from '../api/call.ts';
import type { Identity } from '../shell/identities.ts';

export type AskedState<T> = { readonly value?: T; readonly fault?: unknown; readonly again: () => void };

/** @param since read anew when this changes, too. */
export function useAsked<T>(identity: Identity, path: string | undefined, since?: unknown): AskedState<T> {
  const [state, setState] = useState<{ value?: T; fault?: unknown }>({});
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === undefined) return;
    const leave = new AbortController();
    ask<T>(identity, 'GET', path, { signal: leave.signal })
      .then((value) => setState({ value }))
      .catch((fault: unknown) => {
        if (!leave.signal.aborted) setState({ fault });
      });
    return () => leave.abort();
  }, [identity, path, turn, since]);
  const again = useCallback(() => setTurn((before) => before + 1), []);
  return { ...state, again };
}
