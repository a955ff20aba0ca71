import { Badge } from '../../parts/badge.tsx';
import { Problem } from '../../parts/problem.tsx';
import { useAsked } from '../../parts/use-asked.ts';
import type { PageProps } from '../../shell/page-props.ts';
import { linkTo, place, refine } from '../../shell/place.ts';
import { explainFailure, explainReason } from '../sessions/explanations.ts';
import { shareOf } from '../webhooks/deliveries.ts';
import { aboutWhich, PERIODS, type Period, pathOf, periodOf, rowsOf, type SessionRates } from './session-rates.ts';

export default function Rates({ identity }: PageProps) {
  const period = periodOf(place.value.query.get('period'));
  const { value, fault, again } = useAsked<SessionRates>(identity, pathOf(period));
  return (
    <>
      <h1>Rates</h1>
      <div class="filters">
        <label>
          Sessions of the
          <select value={period} onChange={(event) => refine({ period: event.currentTarget.value })}>
            {PERIODS.map(([name, words]) => (
              <option key={name} value={name}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <button type="button" class="quiet" onClick={again}>
          Count again
        </button>
      </div>
      {fault !== undefined && <Problem fault={fault} />}
      {value === undefined && fault === undefined && <p aria-busy="true">Counting</p>}
      {value !== undefined && <Counted rates={value} period={period} />}
    </>
  );
}

type Props = { readonly rates: SessionRates; readonly period: Period };

function Counted({ rates, period }: Props) {
  const { counted, failed, lookedAt, failures, refusals, deliveries } = rates;
  return (
    <>
      <h2>What came of them</h2>
      <p role="status">{aboutWhich(counted, 'sessions', period)}</p>
      <Outcomes outcomes={rates.outcomes} />
      <h2>Why sessions failed</h2>
      <p>{aboutWhich(failed, 'sessions that failed', period)}</p>
      {failures.length > 0 && (
        <>
          <ol aria-label="The most frequent causes">
            {failures.map(({ code, reason, count }) => (
              <li key={`${code} ${reason}`}>
                <strong>{count.toLocaleString('en')}</strong> <code>{reason ?? code}</code>{' '}
                {(explainReason(reason ?? '') ?? explainFailure(code))?.meaning}
              </li>
            ))}
          </ol>
          <p>
            <a href={linkTo('sessions', '', { status: 'failed' })}>Sessions that failed</a>
          </p>
        </>
      )}
      <h2>What wallets were refused</h2>
      <p>{aboutWhich(lookedAt, 'sessions with something on record', period)}</p>
      {refusals.length === 0 ? (
        <p class="fine">No wallet that came to collect was refused.</p>
      ) : (
        <ol aria-label="The most frequent refusals">
          {refusals.map(({ code, count }) => (
            <li key={code}>
              <strong>{count.toLocaleString('en')}</strong> <code>{code}</code>
            </li>
          ))}
        </ol>
      )}
      <h2>Webhooks</h2>
      {deliveries.length === 0 ? (
        <p class="fine">No webhook was called in these sessions.</p>
      ) : (
        <ul aria-label="Deliveries by kind of webhook">
          {deliveries.map((rate) => (
            <li key={rate.webhook}>
              {rate.webhook}: {shareOf(rate)} ({rate.delivered} delivered, {rate.failed} failed, {rate.pending} pending)
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Outcomes({ outcomes }: Pick<SessionRates, 'outcomes'>) {
  const rows = rowsOf(outcomes);
  if (rows.length === 0)
    return (
      <p class="empty">
        Offers and requests are counted here, by what came of them; <code>POST /issuer/offer</code> and <code>POST /verifier/offer</code>{' '}
        make them.
      </p>
    );
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users scroll it, too
    <section class="scroll" aria-label="What came of sessions" tabIndex={0}>
      <table>
        <caption class="hidden">What came of sessions</caption>
        <thead>
          <tr>
            <th scope="col">Kind</th>
            {rows[0]?.counts.map(({ status }) => (
              <th key={status} scope="col">
                <Badge status={status} />
              </th>
            ))}
            <th scope="col">All</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ kind, counts, total }) => (
            <tr key={kind}>
              <th scope="row">{kind}</th>
              {counts.map(({ status, count, share }) => (
                <td key={status} data-title={status}>
                  {count.toLocaleString('en')} <span class="fine">{share} %</span>
                </td>
              ))}
              <td data-title="all">{total.toLocaleString('en')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
