import { useEffect, useState } from 'preact/hooks';
import { ApiFailure, ask } from '../../api/call.ts';
import type { Identity } from '../../shell/identities.ts';
import { isOpen, type SessionRecord } from './session-record.ts';

/** A credential that was promised for later. Those that are ready are not kept here: they hold values of a person. */
export type DeferredRecord = {
  readonly transactionId: string;
  readonly credentialConfigurationId: string;
  readonly status: 'pending' | 'ready' | 'retrieved' | 'failed' | 'expired';
  readonly holderKeys: readonly unknown[];
  readonly interval: number;
  readonly errorMessage?: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly expiresAt: string;
};

/** The stream tells of the session and not of what is deferred in it. */
const PAUSE_MS = 3_000;

export const mayDecide = ({ roles }: Identity) => roles.includes('issuance:offer') || roles.includes('issuance:manage');

export type DeferredState = { readonly deferred: readonly DeferredRecord[]; readonly fault?: unknown; readonly again: () => void };

export function useDeferred(identity: Identity, session: SessionRecord | undefined): DeferredState {
  const [state, setState] = useState<{ deferred: readonly DeferredRecord[]; fault?: unknown }>({ deferred: [] });
  const [turn, setTurn] = useState(0);
  const { id, kind, status } = session ?? {};
  useEffect(() => {
    if (id === undefined || status === undefined || kind !== 'issuance' || !mayDecide(identity)) return;
    const leave = new AbortController();
    watch(identity, id, isOpen({ status }), leave.signal, (deferred) => setState({ deferred })).catch((fault: unknown) => {
      if (!leave.signal.aborted) setState((before) => ({ ...before, fault }));
    });
    return () => leave.abort();
  }, [identity, id, kind, status, turn]);
  return { ...state, again: () => setTurn((before) => before + 1) };
}

async function watch(
  identity: Identity,
  session: string,
  goesOn: boolean,
  signal: AbortSignal,
  tell: (deferred: readonly DeferredRecord[]) => void,
): Promise<void> {
  let before = '';
  do {
    if (!document.hidden) {
      const found = await read(identity, session, signal);
      const now = JSON.stringify(found);
      if (found !== undefined && now !== before) tell(found);
      before = now ?? before;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  } while (goesOn && !signal.aborted);
}

/** @throws ApiFailure for a refusal. */
async function read(identity: Identity, session: string, signal: AbortSignal) {
  try {
    const query = { session };
    const all = await ask<readonly (DeferredRecord & { readonly credentials?: unknown })[]>(identity, 'GET', '/issuer/deferred', {
      query,
      signal,
    });
    return all.map(({ credentials: _, ...record }) => record);
  } catch (error) {
    if (error instanceof ApiFailure || signal.aborted) throw error;
    return undefined;
  }
}
