import { useEffect, useState } from 'preact/hooks';
import { ask, BASE, send } from '../../api/call.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { at } from '../../parts/json-paths.ts';
import { JsonView } from '../../parts/json-view.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Time } from '../../parts/time.tsx';
import { useAsked } from '../../parts/use-asked.ts';
import type { Identity } from '../../shell/identities.ts';
import { goTo, linkTo, place, refine } from '../../shell/place.ts';
import { Bitmap } from './bitmap.tsx';
import { FindSession } from './find-session.tsx';
import { filled, type ListRow } from './list-row.ts';
import { ReasonField, reasonIn } from './reason.tsx';
import { nameOfStatus, type ReadList, readToken, statusAt } from './token.ts';

/** One list: how it stands, and as a verifier sees it. */
export function StatusListPage({ identity, id }: { readonly identity: Identity; readonly id: string }) {
  const path = `/status-lists/${encodeURIComponent(id)}`;
  const { value: list, fault, again } = useAsked<ListRow>(identity, path);
  const [turn, setTurn] = useState(0);
  const remove = async () => {
    await ask(identity, 'DELETE', path);
    goTo('status');
    return 'The list is deleted.';
  };
  const readAgain = () => {
    again();
    setTurn(turn + 1);
  };
  return (
    <>
      <p class="fine">
        <a href={linkTo('status')}>Status</a>
      </p>
      <h1>Status list {id.slice(0, 8)}</h1>
      {fault !== undefined && <Problem fault={fault} />}
      {list !== undefined && (
        <>
          <div class="doings">
            <button type="button" onClick={readAgain}>
              Read it again
            </button>
            <ChangeStatus identity={identity} done={readAgain} />
            {list.usedEntries === 0 && (
              <Confirm label="Delete" title="Delete this list?" isGrave act={remove}>
                <p>No credential uses it.</p>
              </Confirm>
            )}
          </div>
          <div class="builder">
            <section class="card" aria-labelledby="stands">
              <h2 id="stands">How it stands</h2>
              <Facts list={list} />
            </section>
            <AsSeen key={turn} uri={list.uri} />
          </div>
          <FindSession identity={identity} />
        </>
      )}
    </>
  );
}

function Facts({ list }: { readonly list: ListRow }) {
  return (
    <dl class="facts">
      <dt>Address</dt>
      <dd>
        <code>{list.uri}</code>
      </dd>
      <dt>Filled</dt>
      <dd>{filled(list)}</dd>
      <dt>Bits of an entry</dt>
      <dd>
        {list.bits}: {list.bits === 1 ? 'valid and revoked' : 'valid, revoked and suspended'}
      </dd>
      <dt>Serves</dt>
      <dd>{list.credentialConfigurationId ?? 'all credentials'}</dd>
      <dt>Next signature</dt>
      <dd>{list.expiresAt === null ? 'when somebody reads it' : <Time at={list.expiresAt} />}</dd>
      <dt>A change is seen</dt>
      <dd>
        {list.immediateUpdate
          ? 'at once by who fetches the list, and by others when their copy ends'
          : `within ${list.ttl} seconds`}
      </dd>
    </dl>
  );
}

/** Revocation is final, so it is asked for by the session, and said what it does. */
export function ChangeStatus({ identity, done }: { readonly identity: Identity; readonly done: () => void }) {
  const act = async (form: FormData) => {
    const body = {
      sessionId: String(form.get('session')).trim(),
      status: Number(form.get('status')),
      ...reasonIn(form),
    };
    const { changed } = await ask<{ readonly changed: number }>(identity, 'POST', '/session/revoke', {
      body,
    });
    done();
    return `${changed} credentials are ${nameOfStatus(body.status)} now.`;
  };
  return (
    <Confirm label="Revoke or restore" title="Revoke, suspend or restore" act={act}>
      <label>
        Session that issued the credentials
        <input
          name="session"
          required
          defaultValue={place.value.query.get('session') ?? ''}
          spellcheck={false}
          autocapitalize="none"
        />
      </label>
      <label>
        They are
        <select name="status">
          <option value="1">revoked, for good</option>
          <option value="2">suspended</option>
          <option value="0">valid again</option>
        </select>
      </label>
      <ReasonField />
      <p class="fine">
        A person, or the credential’s reference, leads to the session on the page{' '}
        <a href={linkTo('sessions')}>Sessions</a>.
      </p>
    </Confirm>
  );
}

/** Fetched without a token, as any verifier does. */
function AsSeen({ uri }: { readonly uri: string }) {
  const [state, setState] = useState<{ readonly list?: ReadList; readonly fault?: unknown }>({});
  const index = place.value.query.get('entry') ?? '';
  useEffect(() => {
    const leave = new AbortController();
    const path = new URL(uri).pathname.slice(BASE.length);
    send(undefined, 'GET', path, {
      headers: { Accept: 'application/statuslist+jwt' },
      signal: leave.signal,
    })
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
          <p aria-live="polite">{index !== '' && saidOf(list, Number(index))}</p>
          <details>
            <summary>The token, decoded</summary>
            <JsonView label="Header" value={list.header} />
            <JsonView label="Claims" value={withoutList(list.claims)} />
          </details>
          <p class="fine">
            Its signature is not checked here; verifiers check it by the certificate in its header.
          </p>
        </>
      )}
    </section>
  );
}

function saidOf(list: ReadList, index: number): string {
  const status = statusAt(list, index);
  return status === undefined
    ? `The list has no entry ${index}.`
    : `Entry ${index} is ${nameOfStatus(status)}${status === 0 ? ', or given to nobody' : ''}.`;
}

/** The list itself is in the picture. */
function withoutList(claims: unknown): unknown {
  const packed = String(at(claims, 'status_list', 'lst') ?? '');
  const status_list = { bits: at(claims, 'status_list', 'bits'), lst: `… ${packed.length} characters` };
  return { ...(claims as object), status_list };
}
