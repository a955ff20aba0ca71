import { CurePlace } from './cure-place.tsx';
import { cureOf, FAILURE_PLACES } from './cures.ts';
import { FAILURES, REASONS } from './explanations.ts';
import type { Check, SessionRecord } from './session-record.ts';

type Props = { readonly session: SessionRecord };

/** What came of a session: one sentence, then each check, the failed one open. */
export function Verdict({ session }: Props) {
  const { report = [], failure } = session;
  const failed = report.find(({ result }) => result === 'failed');
  return (
    <section class="card" aria-labelledby="verdict">
      <h2 id="verdict">Verdict</h2>
      <p>
        <strong>{sentenceOf(session, failed)}</strong>
      </p>
      {failure !== undefined && <Cure session={session} failure={failure} />}
      {report.length > 0 && (
        <ul class="checks">
          {report.map((check, index) => (
            <li key={`${index} ${check.check}`}>
              <CheckLine session={session} check={check} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function sentenceOf({ status, kind, failure }: SessionRecord, failed: Check | undefined): string {
  if (status === 'completed')
    return kind === 'issuance'
      ? 'Issued: the wallet has what was offered.'
      : 'Accepted: what was presented is good.';
  if (status === 'expired') return 'Expired: no wallet ended it in time.';
  if (status !== 'failed')
    return kind === 'issuance' ? 'Open: nothing is collected yet.' : 'Open: there is no answer yet.';
  if (failed?.reason !== undefined) return `Refused: ${REASONS[failed.reason] ?? failed.reason}.`;
  if (failure?.code === 'cancelled') return 'Cancelled: somebody of the tenant ended it.';
  return `Failed: ${FAILURES[failure?.code ?? '']?.[0] ?? failure?.code ?? 'nobody knows why'}.`;
}

type CureProps = Props & { readonly failure: NonNullable<SessionRecord['failure']> };

function Cure({ session, failure: { code, message } }: CureProps) {
  return (
    <dl class="facts">
      <dt>Code</dt>
      <dd>
        <code>{code}</code>
      </dd>
      <dt>On record</dt>
      <dd>{message}</dd>
      <dt>What to do</dt>
      <dd>
        {FAILURES[code]?.[1] ?? 'see docs/troubleshooting.md'}{' '}
        <CurePlace session={session} cure={FAILURE_PLACES[code] ?? {}} />
      </dd>
    </dl>
  );
}

type CheckProps = Props & { readonly check: Check };

function CheckLine({ session, check: told }: CheckProps) {
  const { id, check, result, input, reason, detail, section } = told;
  const mark = result === 'passed' ? '✓' : '✗';
  const title = `${id === undefined ? '' : `${id}: `}${check}`;
  return (
    <details open={result === 'failed'}>
      <summary class={result}>
        <span aria-hidden="true">{mark}</span> {title} <span class="fine">{result}</span>
      </summary>
      <dl class="facts">
        <dt>Expected by</dt>
        <dd>{section}</dd>
        {input !== undefined && <dt>Came</dt>}
        {input !== undefined && <dd>{input}</dd>}
        {reason !== undefined && <dt>Likely cause</dt>}
        {reason !== undefined && (
          <dd>
            {REASONS[reason] ?? reason} (<code>{reason}</code>)
          </dd>
        )}
        {reason !== undefined && <dt>What to change</dt>}
        {reason !== undefined && (
          <dd>
            {cureOf(reason).what} <CurePlace session={session} cure={cureOf(reason)} />
          </dd>
        )}
        {detail !== undefined && <dt>In detail</dt>}
        {detail !== undefined && <dd>{detail}</dd>}
      </dl>
    </details>
  );
}
