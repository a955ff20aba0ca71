import { ask } from '../../api/call.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { useAsked } from '../../parts/use-asked.ts';
import type { Identity } from '../../shell/identities.ts';
import { goTo } from '../../shell/place.ts';
import type { StatusMatch } from '../status/find-session.tsx';
import { ReasonField, reasonIn } from '../status/reason.tsx';
import { changedInWords, StatusChoice } from '../status/status-choice.tsx';
import { isOpen, type SessionRecord } from './session-record.ts';

type Props = { readonly identity: Identity; readonly session: SessionRecord; readonly again: () => void };

export function SessionActions({ identity, session, again }: Props) {
  const { id, kind, status } = session;
  const path = `/session/${encodeURIComponent(id)}`;
  // Nothing was issued that has a status: nothing is offered.
  const mayHaveIssued = kind === 'issuance' && status !== 'active';
  const { value: issued = [] } = useAsked<readonly StatusMatch[]>(
    identity,
    mayHaveIssued ? `${path}/statuses?limit=25` : undefined,
    session.updatedAt,
  );
  const cancel = async () => {
    await ask(identity, 'POST', `${path}/cancel`);
    again();
    return 'It is cancelled.';
  };
  const remove = async () => {
    await ask(identity, 'DELETE', path);
    goTo('sessions');
    return 'The session is deleted.';
  };
  const runAgain = async () => {
    const where = kind === 'issuance' ? '/issuer/offer' : '/verifier/offer';
    const made = await ask<{ readonly session: string }>(identity, 'POST', where, { body: session.credentialPayload });
    goTo('sessions', made.session);
    return 'This is the new session.';
  };
  const setStatus = async (form: FormData) => {
    const body = { sessionId: id, status: Number(form.get('status')), ...reasonIn(form) };
    const { changed } = await ask<{ readonly changed: number }>(identity, 'POST', '/session/revoke', { body });
    again();
    return changedInWords(changed, body.status);
  };
  return (
    <div class="doings">
      {isOpen(session) && (
        <Confirm label="Cancel" title="Cancel this session" act={cancel} isGrave>
          <p>No wallet can use its link any more. What was issued stays.</p>
        </Confirm>
      )}
      {issued.length > 0 && (
        <Confirm label="Change status" title="Revoke, suspend or restore" act={setStatus} isGrave>
          <StatusChoice label="Its credentials are" bits={Math.min(...issued.map(({ bits }) => bits))} />
          <ReasonField />
        </Confirm>
      )}
      {isWhole(session) && (
        <Confirm label="Run again" title="Run again" act={runAgain}>
          <p>A new session is made by the same request; this one stays as it is.</p>
        </Confirm>
      )}
      <button type="button" class="quiet" onClick={() => download(session)}>
        Download without claims
      </button>
      <Confirm label="Delete" title="Delete this session" act={remove} isGrave>
        <p>All it holds goes, and wallets cannot renew what they got by it.</p>
      </Confirm>
    </div>
  );
}

/** A request of which something is masked, a value of a person or a key, cannot be made from here. */
function isWhole({ credentialPayload }: SessionRecord): boolean {
  return credentialPayload !== undefined && !/•••|"\*\*\*"/.test(JSON.stringify(credentialPayload));
}

/** Made of what the service answered without values of persons. */
function download(session: SessionRecord): void {
  const file = new Blob([JSON.stringify(session, null, 2)], { type: 'application/json' });
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = `session-${session.id}.json`;
  link.click();
  URL.revokeObjectURL(link.href);
}
