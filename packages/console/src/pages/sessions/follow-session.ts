import { useEffect, useState } from 'preact/hooks';
import { ApiFailure, ask, send } from '../../api/call.ts';
import type { Identity } from '../../shell/identities.ts';
import { isOpen, type SessionRecord } from './session-record.ts';

/** Before a stream that broke is opened again. */
const PAUSE_MS = 1_000;
const MOST_TEXT = 64 * 1024;

export type Followed = { readonly session?: SessionRecord; readonly fault?: unknown; readonly again: () => void };

/** A session without values of persons, read again at every event of its stream. */
export function useSession(identity: Identity, id: string): Followed {
  const [state, setState] = useState<{ session?: SessionRecord; fault?: unknown }>({});
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const leave = new AbortController();
    const read = async () => {
      const session = await readMasked(identity, id, leave.signal);
      setState({ session });
      return session;
    };
    follow(identity, id, read, leave.signal).catch((fault: unknown) => {
      if (!leave.signal.aborted) setState((before) => ({ ...before, fault }));
    });
    return () => leave.abort();
  }, [identity, id, turn]);
  return { ...state, again: () => setTurn((before) => before + 1) };
}

function readMasked(identity: Identity, id: string, signal: AbortSignal): Promise<SessionRecord> {
  const path = `/session/${encodeURIComponent(id)}`;
  return ask(identity, 'GET', path, { query: { values: 'masked' }, signal });
}

async function follow(identity: Identity, id: string, read: () => Promise<SessionRecord>, signal: AbortSignal): Promise<void> {
  let last: string | undefined;
  let session = await read();
  while (isOpen(session) && !signal.aborted) {
    try {
      const headers = { Accept: 'text/event-stream', ...(last !== undefined && { 'Last-Event-ID': last }) };
      const path = `/session/${encodeURIComponent(id)}/events`;
      const answer = await send(identity, 'GET', path, { headers, signal });
      for await (const event of eventIds(answer)) {
        last = event;
        session = await read();
      }
    } catch (error) {
      if (error instanceof ApiFailure || signal.aborted) throw error;
    }
    if (!isOpen(session)) return;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    session = await read();
  }
}

async function* eventIds(answer: Response): AsyncGenerator<string> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (let part = await reader?.read(); part !== undefined && !part.done; part = await reader?.read()) {
    text += part.value;
    if (text.length > MOST_TEXT) throw new Error('an event of the service is too long');
    const events = text.split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const id = /^id: ?(\d+)/m.exec(event)?.[1];
      if (id !== undefined) yield id;
    }
  }
}
