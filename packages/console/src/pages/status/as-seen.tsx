import { useEffect, useState } from 'preact/hooks';
import { BASE, send } from '../../api/call.ts';
import { at } from '../../parts/json-paths.ts';
import { JsonView } from '../../parts/json-view.tsx';
import { Problem } from '../../parts/problem.tsx';
import { useAsked } from '../../parts/use-asked.ts';
import type { Identity } from '../../shell/identities.ts';
import { place, refine } from '../../shell/place.ts';
import { Bitmap } from './bitmap.tsx';
import type { StatusMatch } from './find-session.tsx';
import { Lag } from './lag.tsx';
import type { ListRow } from './list-row.ts';
import { nameOfStatus, type ReadList, readToken, statusAt } from './token.ts';

type Props = { readonly identity: Identity; readonly of: ListRow };

/** Fetched without a token, as any verifier does. */
export function AsSeen({ identity, of }: Props) {
  const { uri } = of;
  const [state, setState] = useState<{ readonly list?: ReadList; readonly fault?: unknown }>({});
  const index = place.value.query.get('entry') ?? '';
  const session = place.value.query.get('session') ?? '';
  const { value: found = [] } = useAsked<readonly StatusMatch[]>(
    identity,
    session === '' ? undefined : `/session/${encodeURIComponent(session)}/statuses?limit=25`,
  );
  const onRecord = found.filter(({ statusListId }) => statusListId === of.id);
  useEffect(() => {
    const leave = new AbortController();
    const path = new URL(uri).pathname.slice(BASE.length);
    send(undefined, 'GET', path, { headers: { Accept: 'application/statuslist+jwt' }, signal: leave.signal })
      .then(async (answer) => setState({ list: await readToken(await answer.text()) }))
      .catch((fault: unknown) => {
        if (!leave.signal.aborted) setState({ fault });
      });
    return () => leave.abort();
  }, [uri]);
  const { list, fault } = state;
  return (
    <section class="card" aria-labelledby="seen">
      <h2 id="seen">As a verifier sees it</h2>
      {fault !== undefined && <Problem fault={fault} />}
      {list === undefined && fault === undefined && <p aria-busy="true">Fetching the token</p>}
      {list !== undefined && (
        <>
          <Bitmap list={list} marked={index === '' ? undefined : Number(index)} />
          <label>
            Entry, the <code>idx</code> of a credential
            <input
              type="number"
              min={0}
              max={list.entries - 1}
              value={index}
              onInput={(event) => refine({ entry: event.currentTarget.value })}
            />
          </label>
          <p aria-live="polite">{index !== '' && saidOf(list, Number(index), onRecord)}</p>
          <Lag list={list} of={of} onRecord={onRecord} />
          <details>
            <summary>The token, decoded</summary>
            <JsonView label="Header" value={list.header} />
            <JsonView label="Claims" value={withoutList(list.claims)} />
          </details>
          <p class="fine">Its signature is not checked here; verifiers check it by the certificate in its header.</p>
        </>
      )}
    </section>
  );
}

function saidOf(list: ReadList, index: number, onRecord: readonly StatusMatch[]): string {
  const status = statusAt(list, index);
  if (status === undefined) return `The list has no entry ${index}.`;
  const known = onRecord.find((match) => match.index === index);
  if (known !== undefined && known.status !== status) return `Entry ${index} is still ${nameOfStatus(status)} in this copy.`;
  const isUnknown = status === 0 && known === undefined;
  return `Entry ${index} is ${nameOfStatus(status)}${isUnknown ? ', or given to nobody' : ''}.`;
}

/** The list itself is in the picture. */
function withoutList(claims: unknown): unknown {
  const packed = String(at(claims, 'status_list', 'lst') ?? '');
  const status_list = { bits: at(claims, 'status_list', 'bits'), lst: `… ${packed.length} characters` };
  return { ...(claims as object), status_list };
}
