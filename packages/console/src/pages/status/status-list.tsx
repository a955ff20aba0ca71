import { useState } from 'preact/hooks';
import { ask } from '../../api/call.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Time } from '../../parts/time.tsx';
import { useAsked } from '../../parts/use-asked.ts';
import type { Identity } from '../../shell/identities.ts';
import { goTo, linkTo, place, refine } from '../../shell/place.ts';
import { AsSeen } from './as-seen.tsx';
import { FindSession } from './find-session.tsx';
import { filled, type ListRow } from './list-row.ts';
import { ReasonField, reasonIn } from './reason.tsx';
import { changedInWords, StatusChoice } from './status-choice.tsx';

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
            <ChangeStatus identity={identity} bits={list.bits} done={readAgain} />
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
            <AsSeen key={turn} identity={identity} of={list} />
          </div>
          <FindSession identity={identity} again={turn} />
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
          : `within ${list.ttl} seconds, or at once with immediateUpdate`}
      </dd>
    </dl>
  );
}

type ChangeProps = { readonly identity: Identity; readonly bits?: number; readonly done: () => void };

/** Revocation is final, so it is asked for by the session, and said what it does. */
export function ChangeStatus({ identity, bits, done }: ChangeProps) {
  const act = async (form: FormData) => {
    const body = { sessionId: String(form.get('session')).trim(), status: Number(form.get('status')), ...reasonIn(form) };
    const { changed } = await ask<{ readonly changed: number }>(identity, 'POST', '/session/revoke', { body });
    done();
    // What is on record of them stands beside what verifiers have.
    refine({ session: body.sessionId });
    return changedInWords(changed, body.status);
  };
  return (
    <Confirm label="Revoke or restore" title="Revoke, suspend or restore" act={act}>
      <label>
        Session that issued the credentials
        <input name="session" required defaultValue={place.value.query.get('session') ?? ''} spellcheck={false} autocapitalize="none" />
      </label>
      <StatusChoice label="They are" bits={bits} />
      <ReasonField />
      <p class="fine">
        A person, or the credential’s reference, leads to the session on the page <a href={linkTo('sessions')}>Sessions</a>.
      </p>
    </Confirm>
  );
}
