import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ApiFailure, ask, send } from '../api/call.ts';
import type { Identity } from '../shell/identities.ts';
import { goTo } from '../shell/place.ts';
import { type Path, put, recordAt, textAt } from './json-paths.ts';
import { say } from './said.tsx';

export type DraftProblem = { readonly path: string; readonly message: string; readonly isWarning: boolean };

type Warning = { readonly member: string; readonly concerns: string; readonly message: string; readonly change: string };

export type Draft = {
  readonly value: unknown;
  readonly isNew: boolean;
  readonly isRead: boolean;
  readonly isBusy: boolean;
  readonly isChanged: boolean;
  readonly fault: unknown;
  readonly told: readonly DraftProblem[];
  readonly change: (path: Path, next: unknown) => void;
  readonly replace: (value: unknown) => void;
  readonly save: () => Promise<void>;
  readonly remove: () => Promise<string>;
  /** Leaves what was typed, and shows what is stored. */
  readonly readAgain: () => void;
};

type DraftOptions = {
  readonly identity: Identity;
  readonly page: string;
  readonly path: string;
  readonly id: string;
  readonly blank: unknown;
  /** Members of answers that are not written. */
  readonly derived: readonly string[];
};

type State = {
  value: unknown;
  stored: unknown;
  tag?: string | undefined;
  isRead: boolean;
  isBusy: boolean;
  fault?: unknown;
  told: readonly DraftProblem[];
};

/** The page of what was made opens anew; what the service said of it is shown there. */
let saidOfNew: { readonly id: string; readonly told: readonly DraftProblem[] } | undefined;

export function useDraft({ identity, page, path, id, blank, derived }: DraftOptions): Draft {
  const isNew = id === 'new';
  const [state, setState] = useState<State>({ value: blank, stored: blank, isRead: isNew, isBusy: false, told: [] });
  const [turn, setTurn] = useState(0);
  const address = `${path}/${encodeURIComponent(id)}`;
  const latest = useRef(state);
  latest.current = state;
  useEffect(() => {
    if (isNew) return;
    const leave = new AbortController();
    send(identity, 'GET', address, { signal: leave.signal })
      .then(async (answer) => {
        const stored = plain(await answer.json(), derived);
        const told = saidOfNew?.id === id ? saidOfNew.told : [];
        saidOfNew = undefined;
        setState({ value: stored, stored, tag: tagOf(answer), isRead: true, isBusy: false, told });
      })
      .catch((fault: unknown) => {
        if (!leave.signal.aborted) setState((before) => ({ ...before, fault }));
      });
    return () => leave.abort();
  }, [identity, address, turn]);
  const save = async () => {
    const { value, tag } = latest.current;
    setState((before) => ({ ...before, isBusy: true, fault: undefined, told: [] }));
    try {
      const named = textAt(value, 'id');
      if (isNew) await assertFree(identity, path, named);
      else if (named !== id) throw new Error('The id cannot be changed. Make a new one instead.');
      const headers = tag === undefined ? {} : { 'If-Match': tag };
      const answer = await send(identity, 'POST', path, { body: value, headers });
      const body: unknown = await answer.json();
      const told = warningsOf(body);
      say(told.length === 0 ? 'Saved.' : `Saved, with ${notes(told.length)}.`);
      if (isNew) {
        saidOfNew = { id: named, told };
        goTo(page, named);
        return;
      }
      const stored = plain(body, derived);
      setState({ value: stored, stored, tag: tagOf(answer), isRead: true, isBusy: false, told });
    } catch (fault) {
      setState((before) => ({ ...before, isBusy: false, fault, told: errorsOf(fault) }));
    }
  };
  const isChanged = useMemo(
    () => isNew || JSON.stringify(state.value) !== JSON.stringify(state.stored),
    [isNew, state.value, state.stored],
  );
  return {
    value: state.value,
    isNew,
    isRead: state.isRead,
    isBusy: state.isBusy,
    isChanged,
    fault: state.fault,
    told: state.told,
    change: (where, next) => setState((before) => ({ ...before, value: put(before.value, where, next) })),
    replace: (value) => setState((before) => ({ ...before, value })),
    save,
    readAgain: () => {
      setState((before) => ({ ...before, isRead: false, fault: undefined, told: [] }));
      setTurn(turn + 1);
    },
    async remove() {
      const headers = state.tag === undefined ? {} : { 'If-Match': state.tag };
      await ask(identity, 'DELETE', address, { headers });
      goTo(page);
      return `${id} is gone.`;
    },
  };
}

export function notes(count: number): string {
  return count === 1 ? 'one note' : `${count} notes`;
}

async function assertFree(identity: Identity, path: string, id: string): Promise<void> {
  if (id === '') return;
  if (id === 'new') throw new Error('“new” is an address of this console; choose another id.');
  try {
    await send(identity, 'GET', `${path}/${encodeURIComponent(id)}`);
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 404) return;
    throw error;
  }
  throw new Error(`There is one with the id ${id} already. Open that, or choose another id.`);
}

function plain(body: unknown, derived: readonly string[]): unknown {
  return Object.fromEntries(Object.entries(recordAt(body)).filter(([name, value]) => value !== null && !derived.includes(name)));
}

function tagOf(answer: Response): string | undefined {
  return answer.headers.get('ETag') ?? undefined;
}

function errorsOf(fault: unknown): readonly DraftProblem[] {
  if (!(fault instanceof ApiFailure)) return [];
  return fault.errors.map(({ path, message }) => ({ path, message, isWarning: false }));
}

function warningsOf(body: unknown): readonly DraftProblem[] {
  const { warnings } = body as { readonly warnings?: readonly Warning[] };
  return (warnings ?? []).map(({ member, concerns, message, change }) => ({
    path: member,
    message: `${message}; ${change}. It concerns ${concerns}.`,
    isWarning: true,
  }));
}
