import { useState } from 'preact/hooks';
import { Badge } from '../../parts/badge.tsx';
import { isSecret } from '../../parts/secret.ts';
import { type Column, Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import type { PageProps } from '../../shell/page-props.ts';
import { linkTo, place, refine } from '../../shell/place.ts';
import { SessionPage } from './session.tsx';

type Row = {
  readonly id: string;
  readonly kind: string;
  readonly status: string;
  readonly createdAt: string;
  readonly configurationIds: readonly string[];
  readonly reference?: string;
};

const COLUMNS: readonly Column<Row>[] = [
  { title: 'Session', cell: ({ id }) => <a href={linkTo('sessions', id)}>{id.slice(0, 8)}…</a> },
  { title: 'Kind', cell: ({ kind }) => kind },
  { title: 'About', cell: ({ configurationIds }) => configurationIds.join(', ') },
  { title: 'Reference', cell: ({ reference }) => reference ?? '–' },
  { title: 'Status', cell: ({ status }) => <Badge status={status} /> },
  { title: 'Made', cell: ({ createdAt }) => <Time at={createdAt} />, sort: { up: 'asc', down: 'desc' } },
];
const STATUSES = ['active', 'fetched', 'completed', 'expired', 'failed'];

/** Offers and requests, as far as the roles of the client let it see them. */
export default function Sessions(props: PageProps) {
  return props.id === '' ? <SessionList identity={props.identity} /> : <SessionPage {...props} />;
}

function SessionList({ identity }: Pick<PageProps, 'identity'>) {
  const { query } = place.value;
  const [q, status, sort] = ['q', 'status', 'sort'].map((name) => query.get(name) ?? '');
  const [isHeld, setHeld] = useState(false);
  const [text, setText] = useState(q);
  const [asked, setAsked] = useState(q);
  if (asked !== q) {
    setAsked(q);
    setText(q);
  }
  const seek = (event: Event) => {
    event.preventDefault();
    const wanted = (text ?? '').trim();
    setHeld(isSecret(wanted));
    if (!isSecret(wanted)) refine({ q: wanted });
  };
  return (
    <>
      <h1>Sessions</h1>
      <search>
        <form class="filters" onSubmit={seek}>
          <label>
            Id, reference, link, code or nonce
            <input
              type="search"
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
              onChange={seek}
              spellcheck={false}
              autocapitalize="none"
              aria-describedby="whole"
            />
          </label>
          <button type="submit" class="quiet">
            Find
          </button>
          <label>
            Status
            <select value={status} onChange={(event) => refine({ status: event.currentTarget.value })}>
              <option value="">all</option>
              {STATUSES.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        </form>
        <p class="fine" id="whole">
          As a whole, not a part of it; Ctrl K also knows the beginning of an id.
        </p>
      </search>
      <div role="alert">
        {isHeld && (
          <p class="problem">
            That looks like a token or a key, so the service was not asked for it. The <em>Decoder</em> takes it apart in this window.
          </p>
        )}
      </div>
      <Table<Row>
        identity={identity}
        caption="Sessions"
        path="/session"
        query={{ q, status, sort: sort || 'desc', limit: 25, values: 'masked' }}
        columns={COLUMNS}
        rowKey={({ id }) => id}
        onSort={(wanted) => refine({ sort: wanted })}
        empty={<p>Each offer and each request is a session. There is none that fits.</p>}
      />
    </>
  );
}
