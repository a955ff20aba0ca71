import { useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../../api/call.ts';
import { Copy } from '../../parts/copy.tsx';
import { Problem } from '../../parts/problem.tsx';
import type { PageProps } from '../../shell/page-props.ts';

type Verification = {
  readonly status: 'whole' | 'broken' | 'unfinished';
  readonly verified: number;
  readonly length: number;
  readonly fault?: { readonly sequence: number; readonly kind: string; readonly message: string };
  readonly warning?: string;
  readonly next?: string;
};

type Look =
  | { readonly state: 'idle' }
  | { readonly state: 'running' | 'stopped' | 'over'; readonly found?: Verification }
  | { readonly state: 'failed'; readonly fault: unknown };

const COMMAND = 'npm run audit:verify';

type Props = Pick<PageProps, 'identity'> & { readonly tenant: string };

/** Has the service verify the log that the page shows. It goes on until it is over, stopped, or the page is left. */
export function Verify({ identity, tenant }: Props) {
  const [look, setLook] = useState<Look>({ state: 'idle' });
  const leave = useRef<AbortController | undefined>(undefined);
  // Another log, or another client: what was found is about something else.
  useEffect(() => {
    setLook({ state: 'idle' });
    return () => leave.current?.abort();
  }, [identity, tenant]);
  const begin = async () => {
    const mine = new AbortController();
    leave.current = mine;
    setLook({ state: 'running' });
    try {
      for (let cursor: string | undefined; ; ) {
        const found: Verification = await ask(identity, 'GET', '/audit-log/verification', {
          query: { tenant, cursor },
          signal: mine.signal,
        });
        if (mine.signal.aborted) return;
        const isOver = found.status !== 'unfinished';
        setLook({ state: isOver ? 'over' : 'running', found });
        if (isOver) return;
        cursor = found.next;
      }
    } catch (fault) {
      if (!mine.signal.aborted) setLook({ state: 'failed', fault });
    }
  };
  const stop = () => {
    leave.current?.abort();
    setLook({ ...look, state: 'stopped' } as Look);
  };
  return (
    <section class="card" aria-labelledby="verify">
      <h2 id="verify">Was anything altered or removed?</h2>
      <p>
        {look.state === 'running' ? (
          <button type="button" class="quiet" onClick={stop}>
            Stop
          </button>
        ) : (
          <button type="button" onClick={begin}>
            Verify now
          </button>
        )}
      </p>
      <Progress look={look} />
      <Beyond />
    </section>
  );
}

function Progress({ look }: { readonly look: Look }) {
  if (look.state === 'failed') return <Problem fault={look.fault} />;
  const found = look.state === 'idle' ? undefined : look.found;
  return (
    <>
      <p role="status">{sentenceOf(look)}</p>
      {look.state === 'running' && (
        <progress value={found?.verified ?? 0} max={Math.max(found?.length ?? 1, 1)} aria-label="Entries verified" />
      )}
      {found?.fault !== undefined && (
        <div role="alert" class="problem">
          <p>
            Entry {found.fault.sequence} is the first that is wrong: {found.fault.message}.
          </p>
          <p class="fine">{found.fault.kind}; docs/reference/audit.md says what that means.</p>
        </div>
      )}
      {found?.warning !== undefined && <p class="fine">{found.warning}</p>}
    </>
  );
}

function sentenceOf(look: Look): string {
  if (look.state === 'idle' || look.state === 'failed') return '';
  const { found } = look;
  if (found === undefined) return look.state === 'running' ? 'Verifying.' : 'Stopped.';
  const { verified, length, status } = found;
  if (status === 'broken') return 'The log is not as the service wrote it.';
  if (status === 'whole') return length === 0 ? 'There is no entry yet.' : `The log is whole up to entry ${verified}.`;
  return `${look.state === 'stopped' ? 'Stopped. ' : ''}Entry ${verified} of ${length}: whole so far.`;
}

function Beyond() {
  return (
    <details>
      <summary>What this cannot find</summary>
      <p>
        That all of it was put back to an earlier state, or that whole logs are gone. Where the service is installed, this reads the logs of
        all tenants, also against what you kept elsewhere (<code>--expect</code>):
      </p>
      <p>
        <code>{COMMAND}</code> <Copy text={COMMAND} label="Copy the command" />
      </p>
    </details>
  );
}
