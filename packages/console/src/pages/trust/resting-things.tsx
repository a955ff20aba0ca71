import { useEffect, useState } from 'preact/hooks';
import { askPage, type Page } from '../../api/call.ts';
import { Problem } from '../../parts/problem.tsx';
import { sentence } from '../../parts/sentence.ts';
import { useBusy } from '../../parts/use-busy.tsx';
import type { Identity } from '../../shell/identities.ts';
import { Picture } from './picture.tsx';
import { type Ending, keyOf, restingOn } from './resting.ts';

type Props = {
  readonly identity: Identity;
  readonly kind: string;
  readonly words: string;
  /** Read anew when this changes. */
  readonly since: unknown;
};

const PAGE_SIZE = 50;

export function Resting({ identity, kind, words, since }: Props) {
  const [page, setPage] = useState<Page<Ending>>();
  const [fault, setFault] = useState<unknown>();
  const [chosen, setChosen] = useState<string>();
  const [isBusy, run, problem] = useBusy();
  const query = { kind, q: words, limit: PAGE_SIZE };
  useEffect(() => {
    const leave = new AbortController();
    askPage<Ending>(identity, '/trust/forecast', query, leave.signal)
      .then(setPage)
      .catch((error: unknown) => {
        if (!leave.signal.aborted) setFault(error);
      });
    return () => leave.abort();
  }, [since]);
  if (fault !== undefined) return <Problem fault={fault} />;
  if (page === undefined) return <p aria-busy="true">Reading what trust rests on</p>;
  const { rows, next, count = rows.length } = page;
  const more = () =>
    run(async () => {
      const further = await askPage<Ending>(identity, '/trust/forecast', { ...query, cursor: next });
      // What ended or began meanwhile may stand on both pages.
      const all = new Map([...rows, ...further.rows].map((row) => [keyOf(row), row]));
      setPage({ ...further, rows: [...all.values()] });
    });
  const ending = rows.find((row) => keyOf(row) === chosen);
  return (
    <>
      {rows.length === 0 ? (
        <p class="empty">
          {kind + words === ''
            ? 'Keys, certificates, lists and authorities stand here once this tenant issues a credential, or asks a question and says whom it trusts.'
            : 'Nothing is of this kind and called so.'}
        </p>
      ) : (
        <Picture endings={rows} chosen={ending} choose={(key) => setChosen(key === chosen ? undefined : key)} />
      )}
      <p role="status">{ending !== undefined && sentenceOf(ending)}</p>
      {problem}
      {rows.length > 0 && (
        <p class="fine">
          {rows.length} of {count} shown, the soonest to end first.{' '}
          {next !== undefined && (
            <button type="button" class="quiet" aria-busy={isBusy} disabled={isBusy} onClick={more}>
              Show more
            </button>
          )}
        </p>
      )}
    </>
  );
}

function sentenceOf(ending: Ending): string {
  const lost = restingOn(ending);
  const what = lost.length === 0 ? 'Nothing fails' : `${lost.map(({ name }) => name).join(', ')} ${lost.length === 1 ? 'fails' : 'fail'}`;
  const help = ending.renews ? 'It renews itself, as long as nothing is in the way.' : sentence(ending.advice);
  return `If ${ending.name} ends: ${what}. ${help}`;
}
