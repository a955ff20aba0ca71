import { sentence } from '../../parts/sentence.ts';
import { causeOf, meaningOf, originOf, titleOf } from './causes.ts';
import { CurePlace } from './cure-place.tsx';
import { cureOf, FAILURE_PLACES } from './cures.ts';
import { explainFailure, explainReason } from './explanations.ts';
import type { Check, SessionRecord } from './session-record.ts';

const MASK = '•••';

type Props = { readonly session: SessionRecord };

export function Verdict({ session }: Props) {
  const { report = [], failure } = session;
  const failed = report.find(({ result }) => result === 'failed');
  return (
    <section class="card" aria-labelledby="verdict">
      <h2 id="verdict">Verdict</h2>
      <p>
        <strong>{sentenceOf(session, failed)}</strong>
      </p>
      {failure !== undefined && <Cure session={session} failure={failure} reason={failed?.reason} />}
      {report.length > 0 && (
        <ul class="checks">
          {report.map((check, index) => (
            <li key={`${index} ${check.check}`}>
              <CheckLine session={session} check={check} isFirst={check === failed} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function sentenceOf({ status, kind, failure }: SessionRecord, failed: Check | undefined): string {
  if (status === 'completed')
    return kind === 'issuance' ? 'Issued: the wallet has what was offered.' : 'Accepted: what was presented is good.';
  if (status === 'expired') return 'Expired: no wallet ended it in time.';
  if (status !== 'failed') return kind === 'issuance' ? 'Open: nothing is collected yet.' : 'Open: there is no answer yet.';
  if (failed?.reason !== undefined) return `Refused: ${meaningOf(failed.reason)}.`;
  if (failure?.code === 'cancelled') return 'Cancelled: somebody of the tenant ended it.';
  const explanation = explainFailure(failure?.code ?? '');
  if (explanation !== undefined) return `Failed: ${explanation.meaning}. ${explanation.cause}`.trim();
  return `Failed: ${failure?.code ?? 'no reason is recorded'}.`;
}

type CureProps = Props & { readonly failure: NonNullable<SessionRecord['failure']>; readonly reason: string | undefined };

function Cure({ session, failure: { code, message }, reason }: CureProps) {
  const cure =
    reason === undefined ? { what: explainFailure(code)?.fix ?? 'See docs/reference/errors.md', ...FAILURE_PLACES[code] } : cureOf(reason);
  return (
    <dl class="facts">
      <dt>Code</dt>
      <dd>
        <code>{code}</code>
      </dd>
      <dt>On record</dt>
      <dd>
        {message === MASK
          ? 'Kept back, since a backend or a wallet wrote it and may have named a person. Press Show values, below.'
          : message}
      </dd>
      <dt>What to do</dt>
      <dd>
        {sentence(cure.what)} <CurePlace session={session} cure={cure} />
      </dd>
    </dl>
  );
}

type CheckProps = Props & { readonly check: Check; readonly isFirst: boolean };

/** The cure of the first that failed stands above all of them. */
function CheckLine({ session, check: told, isFirst }: CheckProps) {
  const { result, input, reason, detail, section } = told;
  const mark = result === 'passed' ? '✓' : '✗';
  const origin = originOf(told, session.report ?? []);
  return (
    <details open={result === 'failed' && origin === undefined}>
      <summary class={result}>
        <span aria-hidden="true">{mark}</span> {titleOf(told)} <span class="fine">{result}</span>
      </summary>
      <dl class="facts">
        <dt>Expected by</dt>
        <dd>{section}</dd>
        {input !== undefined && <dt>Came</dt>}
        {input !== undefined && <dd>{input}</dd>}
        {reason !== undefined && <dt>Likely cause</dt>}
        {reason !== undefined && (
          <dd>
            {sentence(causeOf(reason))} {explainReason(reason) !== undefined && <code>{reason}</code>}
          </dd>
        )}
        {reason !== undefined && !isFirst && <dt>What to do</dt>}
        {reason !== undefined && !isFirst && (
          <dd>
            {origin === undefined ? (
              <>
                {cureOf(reason).what} <CurePlace session={session} cure={cureOf(reason)} />
              </>
            ) : (
              `Nothing for itself: it follows from “${titleOf(origin)}”.`
            )}
          </dd>
        )}
        {detail !== undefined && detail !== reason && <dt>In detail</dt>}
        {detail !== undefined && detail !== reason && <dd>{detail}</dd>}
      </dl>
    </details>
  );
}
