import { useEffect, useState } from 'preact/hooks';
import { askPage, type Page } from '../../api/call.ts';
import { say } from '../../parts/said.tsx';
import { useBusy } from '../../parts/use-busy.tsx';
import type { Identity } from '../../shell/identities.ts';
import { linkTo } from '../../shell/place.ts';
import { AddAuthorities } from './add-authorities.tsx';
import { type Anchor, nameOf, newAmong } from './anchors.ts';
import { type Taught, teach } from './teach-questions.ts';

/** Authorities of others, gathered here and given to the questions that are to trust them. */
export function ImportAuthorities({
  identity,
  taught,
}: {
  readonly identity: Identity;
  /** Called when questions trust others than before. */
  readonly taught: () => void;
}) {
  const [anchors, setAnchors] = useState<readonly Anchor[]>([]);
  return (
    <section aria-labelledby="import">
      <h2 id="import">To be trusted by this tenant</h2>
      <p>
        Authorities of others, from a file, a trust list or another tenant, are gathered here and then trusted by the questions that you
        choose. One question alone takes them under <em>Whom it trusts</em>, too.
      </p>
      <AddAuthorities verb="Gather" identity={identity} add={(added) => setAnchors((before) => [...before, ...newAmong(before, added)])} />
      {anchors.length > 0 && (
        <>
          <ul class="plain-list" aria-label="Gathered">
            {anchors.map((anchor, index) => (
              <li key={JSON.stringify(anchor)}>
                {nameOf(anchor)}{' '}
                <button
                  type="button"
                  class="quiet small"
                  aria-label={`Leave out ${nameOf(anchor)}`}
                  onClick={() => setAnchors(anchors.filter((_, place) => place !== index))}
                >
                  Leave out
                </button>
              </li>
            ))}
          </ul>
          <Questions identity={identity} anchors={anchors} done={taught} />
        </>
      )}
    </section>
  );
}

type Row = { readonly id: string; readonly description?: string | null };
type Props = { readonly identity: Identity; readonly anchors: readonly Anchor[]; readonly done: () => void };
const PAGE_SIZE = 50;

function Questions({ identity, anchors, done }: Props) {
  const [page, setPage] = useState<Pick<Page<Row>, 'rows' | 'next'>>();
  const [taught, setTaught] = useState<readonly Taught[]>([]);
  const [isBusy, run, problem] = useBusy();
  const read = async (cursor?: string) => {
    const further = await askPage<Row>(identity, '/verifier/config', { limit: PAGE_SIZE, cursor });
    setPage((before) => ({ ...further, rows: [...(before?.rows ?? []), ...further.rows] }));
  };
  useEffect(() => {
    run(() => read());
  }, []);
  if (page === undefined) return problem ?? <p aria-busy="true">Reading the questions</p>;
  const { rows, next } = page;
  if (rows.length === 0) return <p class="empty">This tenant asks nothing yet. A question comes first.</p>;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const ids = new FormData(event.currentTarget as HTMLFormElement).getAll('question').map(String);
    return run(async () => {
      if (ids.length === 0) throw new Error('Choose a question.');
      setTaught([]);
      for (const id of ids) {
        const one = await teach(identity, id, anchors);
        setTaught((before) => [...before, one]);
      }
      say('Done.');
      done();
    });
  };
  return (
    <form onSubmit={submit}>
      <fieldset disabled={isBusy}>
        <legend>Which questions are to trust them</legend>
        {rows.map(({ id, description }) => (
          <label key={id}>
            <input type="checkbox" name="question" value={id} />
            {id} {description && <span class="fine">{description}</span>}
          </label>
        ))}
      </fieldset>
      {next !== undefined && (
        <button type="button" class="quiet" disabled={isBusy} onClick={() => run(() => read(next))}>
          Show more questions
        </button>
      )}
      <button type="submit" aria-busy={isBusy} disabled={isBusy}>
        Have them trusted
      </button>
      {problem}
      <ul class="plain-list" aria-live="polite" aria-label="What came of it">
        {taught.map(({ id, added, fault: why }) => (
          <li key={id}>
            <a href={linkTo('questions', id)}>{id}</a>{' '}
            {why === undefined ? (added === 0 ? 'trusted them already.' : `trusts ${added} more.`) : `was not changed: ${why}`}
          </li>
        ))}
      </ul>
    </form>
  );
}
