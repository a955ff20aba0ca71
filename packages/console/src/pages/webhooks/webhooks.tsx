import { useEffect, useRef, useState } from 'preact/hooks';
import { Badge } from '../../parts/badge.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Time } from '../../parts/time.tsx';
import { useAsked } from '../../parts/use-asked.ts';
import type { PageProps } from '../../shell/page-props.ts';
import { linkTo } from '../../shell/place.ts';
import { aboutWhich, pathOf, type SessionRates } from '../rates/session-rates.ts';
import { Resend } from '../sessions/resend.tsx';
import type { DeliveryRecord } from '../sessions/session-record.ts';
import { type Delivery, deliveriesOf, type Rate, ratesOf, type SessionRead, shareOf, withDelivery } from './deliveries.ts';
import { MOST_SESSIONS, readRecent } from './read-recent.ts';
import { WebhookSecret } from './webhook-secret.tsx';

type Reading = {
  readonly sessions: readonly SessionRead[];
  readonly state: 'reading' | 'stopped' | 'read' | 'read as far as it goes here' | 'failed';
  readonly fault?: unknown;
};

export default function Webhooks({ identity }: PageProps) {
  const { reading, stop, again, resent, since } = useRecent(identity);
  const { sessions, state, fault } = reading;
  const deliveries = deliveriesOf(sessions);
  const { value: wide } = useAsked<SessionRates>(identity, pathOf('7d'), since);
  const open = deliveries.filter(({ result }) => result !== 'delivered');
  return (
    <>
      <h1>Webhooks</h1>
      <p role="status">
        {sessions.length} {sessions.length === 1 ? 'session' : 'sessions'}: {state}.
        {state === 'read as far as it goes here' && ` The newest ${MOST_SESSIONS} are looked at.`}
      </p>
      {state === 'reading' && <progress value={sessions.length} max={MOST_SESSIONS} aria-label="Sessions read" />}
      <p>
        {state === 'reading' ? (
          <button type="button" class="quiet" onClick={stop}>
            Stop
          </button>
        ) : (
          <button type="button" class="quiet" onClick={again}>
            Read again
          </button>
        )}
      </p>
      {fault !== undefined && <Problem fault={fault} />}
      <h2>Rates</h2>
      {wide !== undefined && <p class="fine">{aboutWhich(wide.lookedAt, 'sessions with something on record', '7d')}</p>}
      <Rates rates={wide?.deliveries ?? ratesOf(deliveries)} isReading={state === 'reading'} />
      <h2>Failed and pending</h2>
      <Open identity={identity} deliveries={open} isReading={state === 'reading'} resent={resent} />
      <WebhookSecret identity={identity} />
    </>
  );
}

function useRecent(identity: PageProps['identity']) {
  const [reading, setReading] = useState<Reading>({ sessions: [], state: 'reading' });
  const [turn, setTurn] = useState(0);
  const leave = useRef<AbortController | undefined>(undefined);
  useEffect(() => {
    const mine = new AbortController();
    leave.current = mine;
    setReading({ sessions: [], state: 'reading' });
    readRecent(identity, mine.signal, (sessions) => {
      if (!mine.signal.aborted) setReading({ sessions, state: 'reading' });
    })
      .then((hasMore) => {
        const state = hasMore ? 'read as far as it goes here' : 'read';
        if (!mine.signal.aborted) setReading((before) => ({ ...before, state }));
      })
      .catch((fault: unknown) => {
        if (!mine.signal.aborted) setReading((before) => ({ ...before, state: 'failed', fault }));
      });
    return () => mine.abort();
  }, [identity, turn]);
  const stop = () => {
    leave.current?.abort();
    setReading((before) => ({ ...before, state: 'stopped' }));
  };
  const [sent, setSent] = useState(0);
  const resent = (session: string, now: DeliveryRecord) => {
    setReading((before) => ({ ...before, sessions: withDelivery(before.sessions, session, now) }));
    setSent((before) => before + 1);
  };
  const again = () => setTurn((before) => before + 1);
  return { reading, stop, resent, again, since: `${turn} ${sent}` };
}

function Rates({ rates, isReading }: { readonly rates: readonly Rate[]; readonly isReading: boolean }) {
  if (rates.length === 0)
    return (
      <p class="empty">
        {isReading ? 'Nothing was found so far.' : 'No webhook was called in these sessions.'} Calls stand here once a credential or a
        question has a webhook: <code>GET /session</code> lists them as <code>deliveries</code>.
      </p>
    );
  return (
    <ul aria-label="Rates by kind of webhook">
      {rates.map((rate) => (
        <li key={rate.webhook}>
          {rate.webhook}: {shareOf(rate)} ({rate.delivered} delivered, {rate.failed} failed, {rate.pending} pending)
        </li>
      ))}
    </ul>
  );
}

type OpenProps = Pick<PageProps, 'identity'> & {
  readonly deliveries: readonly Delivery[];
  readonly isReading: boolean;
  readonly resent: (session: string, now: DeliveryRecord) => void;
};

function Open({ identity, deliveries, isReading, resent }: OpenProps) {
  if (deliveries.length === 0) return <p class="empty">{isReading ? 'None so far.' : 'None: backends got what they were sent.'}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users scroll it, too
    <section class="scroll" aria-label="Failed and pending deliveries" tabIndex={0}>
      <table>
        <caption class="hidden">Failed and pending deliveries</caption>
        <thead>
          <tr>
            {['Webhook', 'Result', 'When', 'Session', 'Why', 'What to do'].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {deliveries.map((delivery) => (
            <tr key={`${delivery.session} ${delivery.id}`}>
              <td data-title="Webhook">{delivery.webhook}</td>
              <td data-title="Result">
                <Badge status={delivery.result} />
              </td>
              <td data-title="When">
                <Time at={delivery.at} />
              </td>
              <td data-title="Session">
                <a href={linkTo('sessions', delivery.session)}>{delivery.session.slice(0, 8)}…</a>
              </td>
              <td data-title="Why">{delivery.detail ?? '–'}</td>
              <td data-title="What to do">
                {delivery.webhook === 'claims' ? (
                  'The wallet that waited has gone: make another offer.'
                ) : (
                  <Resend identity={identity} id={delivery.session} delivery={delivery} again={(now) => resent(delivery.session, now)} />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
