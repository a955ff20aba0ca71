import { useState } from 'preact/hooks';
import { Badge } from '../../parts/badge.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import type { Identity } from '../../shell/identities.ts';
import { linkTo, place, refine } from '../../shell/place.ts';
import { nameOfStatus } from './token.ts';

export type StatusMatch = {
  readonly statusListId: string;
  readonly index: number;
  readonly bits: number;
  readonly status: number;
  readonly credentialConfigurationId: string;
  readonly issuedAt: string;
};

/** Ids of sessions have no other characters, and secrets of clients are longer: nothing else is asked for, whatever was pasted. */
const ID = /^[\w-]{1,36}$/;

type Props = {
  readonly identity: Identity;
  /** Changes when a status did. */
  readonly again: unknown;
};

export function FindSession({ identity, again }: Props) {
  const session = place.value.query.get('session') ?? '';
  const [isWanting, setWanting] = useState(false);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const wanted = String(form.get('session')).trim();
    setWanting(!ID.test(wanted));
    refine({ session: ID.test(wanted) ? wanted : undefined });
  };
  return (
    <section aria-labelledby="find">
      <h2 id="find">Find by session</h2>
      <search>
        <form class="filters" onSubmit={submit}>
          <label>
            Session
            <input
              type="search"
              name="session"
              defaultValue={session}
              maxLength={200}
              spellcheck={false}
              autocapitalize="none"
              aria-invalid={isWanting || undefined}
              aria-describedby="find-told"
            />
          </label>
          <button type="submit" class="quiet">
            Find
          </button>
        </form>
      </search>
      <p id="find-told" role="status">
        {isWanting && 'Enter the id of a session: the 22 characters at the top of its page.'}
      </p>
      {session !== '' && (
        <Table<StatusMatch>
          key={session}
          identity={identity}
          caption="Entries of the session"
          path={`/session/${encodeURIComponent(session)}/statuses`}
          query={{ limit: 25 }}
          again={again}
          columns={columnsOf(session)}
          rowKey={({ statusListId, index }) => `${statusListId} ${index}`}
          empty={<p>No credential of this session has a status that could be changed.</p>}
        />
      )}
    </section>
  );
}

const columnsOf = (session: string): readonly Column<StatusMatch>[] => [
  {
    title: 'Entry',
    cell: ({ statusListId, index }) => <a href={linkTo('status', statusListId, { session, entry: String(index) })}>{index}</a>,
  },
  { title: 'List', cell: ({ statusListId }) => <code>{statusListId.slice(0, 8)}…</code> },
  { title: 'Credential', cell: ({ credentialConfigurationId }) => credentialConfigurationId },
  { title: 'On record', cell: ({ status }) => <Badge status={nameOfStatus(status)} /> },
  { title: 'Issued', cell: ({ issuedAt }) => <Time at={issuedAt} /> },
];
