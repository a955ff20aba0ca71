import { JsonView } from '../../parts/json-view.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Time } from '../../parts/time.tsx';
import type { Identity } from '../../shell/identities.ts';
import { type DeferredRecord, useDeferred } from './deferred-record.ts';
import { useSession } from './follow-session.ts';
import { Resend } from './resend.tsx';
import type { SessionRecord } from './session-record.ts';
import { type Step, stepsOf } from './steps.ts';

type Props = { readonly identity: Identity; readonly id: string };

export function SessionTimeline({ identity, id }: Props) {
  const { session, fault, again } = useSession(identity, id);
  const { deferred } = useDeferred(identity, session);
  if (session === undefined) return fault === undefined ? <p aria-busy="true">Loading</p> : <Problem fault={fault} />;
  return <Timeline identity={identity} session={session} deferred={deferred} again={again} />;
}

type TimelineProps = {
  readonly identity: Identity;
  readonly session: SessionRecord;
  readonly deferred: readonly DeferredRecord[];
  readonly again: () => void;
};

export function Timeline({ identity, session, deferred, again }: TimelineProps) {
  return (
    <section class="card" aria-labelledby="timeline">
      <h2 id="timeline">What happened</h2>
      <ol class="timeline">
        {stepsOf(session, deferred).map((step, index) => (
          <li key={`${index} ${step.title}`} class={step.tone}>
            <StepLine step={step} />
            {step.delivery?.result === 'failed' && step.delivery.webhook !== 'claims' && (
              <Resend identity={identity} id={session.id} delivery={step.delivery} again={again} />
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

function StepLine({ step: { title, at, words = [], record } }: { readonly step: Step }) {
  const records = Object.entries(record).filter(([, value]) => value !== undefined);
  const line = (
    <>
      {title} <span class="fine">{at === undefined ? '(when is not on record)' : <Time at={at} />}</span>
    </>
  );
  if (records.length === 0 && words.length === 0) return <p>{line}</p>;
  return (
    <details>
      <summary>{line}</summary>
      {words.map((sentence) => (
        <p key={sentence} class="words">
          {sentence}
        </p>
      ))}
      {records.map(([label, value]) => (
        <JsonView key={label} label={label} value={withoutCodes(value)} />
      ))}
    </details>
  );
}

/** A code of an offer is as good as the credential. */
function withoutCodes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutCodes);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      name === 'pre-authorized_code' || name === 'issuer_state' ? '…' : withoutCodes(inner),
    ]),
  );
}
