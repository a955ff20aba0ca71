import { FAILURES, REASONS } from './explanations.ts';
import type { Check, SessionRecord } from './session-record.ts';

/** What came of a session: one sentence, then each check, the failed one open. */
export function Verdict({ session }: { readonly session: SessionRecord }) {
  const { report = [], failure } = session;
  const failed = report.find(({ result }) => result === 'failed');
  return (
    <section class="card" aria-labelledby="verdict">
      <h2 id="verdict">Verdict</h2>
      <p>
        <strong>{sentenceOf(session, failed)}</strong>
      </p>
      {failure !== undefined && <Cure failure={failure} />}
      {report.length > 0 && (
        <ul class="checks">
          {report.map((check, index) => (
            <li key={`${index} ${check.check}`}>
              <CheckLine check={check} />
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

function Cure({ failure: { code, message } }: { readonly failure: NonNullable<SessionRecord['failure']> }) {
  return (
    <dl class="facts">
      <dt>Code</dt>
      <dd>
        <code>{code}</code>
      </dd>
      <dt>On record</dt>
      <dd>{message}</dd>
      <dt>What to do</dt>
      <dd>{FAILURES[code]?.[1] ?? 'see docs/troubleshooting.md'}</dd>
    </dl>
  );
}

function CheckLine({
  check: { id, check, result, input, reason, detail, section },
}: {
  readonly check: Check;
}) {
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
        {detail !== undefined && <dt>In detail</dt>}
        {detail !== undefined && <dd>{detail}</dd>}
      </dl>
    </details>
  );
}
