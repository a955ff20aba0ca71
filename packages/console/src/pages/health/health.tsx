import { useEffect, useState } from 'preact/hooks';
import { ApiFailure, ask } from '../../api/call.ts';
import { Badge } from '../../parts/badge.tsx';
import { Copy } from '../../parts/copy.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Time } from '../../parts/time.tsx';
import { useAsked } from '../../parts/use-asked.ts';
import type { PageProps } from '../../shell/page-props.ts';

type Health = {
  readonly status: 'ok' | 'degraded' | 'error';
  readonly details: Readonly<Record<string, { readonly status: 'up' | 'down' }>>;
};
type Service = { readonly name: string; readonly version: string; readonly commit: string | null; readonly documentation: string };
type HealthState = { readonly health?: Health; readonly at?: Date; readonly fault?: unknown };

const MEANINGS = {
  ok: 'Everything works.',
  degraded: 'The service works, except for those who need what is down.',
  error: 'The service does not work: what it cannot do without is down.',
} as const;
const DOCTOR = 'npx vidimus doctor';

export default function HealthPage({ identity }: PageProps) {
  const service = useAsked<Service>(identity, '/');
  return (
    <>
      <h1>Health</h1>
      <Parts identity={identity} />
      <h2>Look deeper</h2>
      <p>
        The doctor looks, with the settings of the service, at what an operator can get wrong, and says what to do. It runs where the
        service runs:
      </p>
      <p>
        <code>{DOCTOR}</code> <Copy text={DOCTOR} label="Copy the command" />
      </p>
      <h2>This service</h2>
      {service.fault !== undefined && <Problem fault={service.fault} />}
      {service.value !== undefined && (
        <p>
          {service.value.name} {service.value.version}
          {service.value.commit !== null && <>, commit {service.value.commit.slice(0, 12)}</>}.{' '}
          <a href={service.value.documentation}>API reference</a>
        </p>
      )}
    </>
  );
}

function Parts({ identity }: Pick<PageProps, 'identity'>) {
  const [{ health, at, fault }, setLooked] = useState<HealthState>({});
  const [turn, setTurn] = useState(0);
  const [isBusy, setBusy] = useState(true);
  useEffect(() => {
    const leave = new AbortController();
    setBusy(true);
    readHealth(identity, leave.signal)
      .then((read) => setLooked({ health: read, at: new Date() }))
      .catch((error: unknown) => {
        if (!leave.signal.aborted) setLooked({ fault: error });
      })
      .finally(() => {
        if (!leave.signal.aborted) setBusy(false);
      });
    return () => leave.abort();
  }, [identity, turn]);
  return (
    <>
      {fault !== undefined && <Problem fault={fault} />}
      {health === undefined && fault === undefined && <p aria-busy="true">Looking</p>}
      {health !== undefined && at !== undefined && (
        <>
          <p role="status">
            <Badge status={health.status} /> {MEANINGS[health.status]}{' '}
            <span class="fine">
              Looked <Time at={at} />.
            </span>
          </p>
          <ul aria-label="What the service depends on">
            {Object.entries(health.details).map(([name, { status }]) => (
              <li key={name}>
                {name} <Badge status={status} />
              </li>
            ))}
          </ul>
        </>
      )}
      <p>
        <button type="button" class="quiet" aria-busy={isBusy} onClick={() => setTurn(turn + 1)}>
          Look again
        </button>
      </p>
    </>
  );
}

/** A service that does not work says so with 503, and with the same body. */
async function readHealth(identity: PageProps['identity'], signal: AbortSignal): Promise<Health> {
  try {
    return await ask<Health>(identity, 'GET', '/health', { signal });
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 503 && 'details' in error.body) return error.body as unknown as Health;
    throw error;
  }
}
