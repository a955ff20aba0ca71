import { useState } from 'preact/hooks';
import { ask } from '../../api/call.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import type { PageProps } from '../../shell/page-props.ts';
import { goTo, linkTo, place, refine } from '../../shell/place.ts';
import { FindSession } from './find-session.tsx';
import { filled, type ListRow } from './list-row.ts';
import { ChangeStatus, StatusListPage } from './status-list.tsx';

const COLUMNS: readonly Column<ListRow>[] = [
  { title: 'List', cell: ({ id }) => <a href={linkTo('status', id)}>{id.slice(0, 8)}…</a>, sort: { up: 'asc', down: 'desc' } },
  { title: 'Serves', cell: ({ credentialConfigurationId }) => credentialConfigurationId ?? 'all' },
  { title: 'Bits', cell: ({ bits }) => bits },
  {
    title: 'Filled',
    cell: (row) => (
      <span class="level">
        <progress value={row.usedEntries} max={row.capacity} aria-label={`Filled: ${filled(row)}`} />
        {filled(row)}
      </span>
    ),
  },
  { title: 'Next signature', cell: ({ expiresAt }) => (expiresAt === null ? 'when it is read' : <Time at={expiresAt} />) },
  { title: 'Made', cell: ({ createdAt }) => <Time at={createdAt} /> },
];

export default function Status({ identity, id }: PageProps) {
  const [turn, setTurn] = useState(0);
  if (id !== '') return <StatusListPage identity={identity} id={id} />;
  const sort = place.value.query.get('sort') || 'asc';
  const make = async (form: FormData) => {
    const capacity = String(form.get('capacity'));
    const body = { bits: Number(form.get('bits')), ...(capacity !== '' && { capacity: Number(capacity) }) };
    const made = await ask<ListRow>(identity, 'POST', '/status-lists', { body });
    goTo('status', made.id);
    return 'The list is there.';
  };
  return (
    <>
      <h1>Status</h1>
      <div class="doings">
        <ChangeStatus identity={identity} done={() => setTurn(turn + 1)} />
        <Confirm label="New list" title="New list" act={make}>
          <label>
            What it tells
            <select name="bits">
              <option value="2">valid, revoked and suspended (2 bits)</option>
              <option value="1">valid and revoked (1 bit)</option>
            </select>
          </label>
          <label>
            Entries; as the tenant has it unless stated
            <input name="capacity" type="number" min={1} />
          </label>
          <p class="fine">Nobody has to make lists: issuing makes those that it needs.</p>
        </Confirm>
      </div>
      <FindSession identity={identity} again={turn} />
      <h2>Lists</h2>
      <Table<ListRow>
        identity={identity}
        caption="Status lists"
        path="/status-lists"
        query={{ sort, limit: 25 }}
        columns={COLUMNS}
        rowKey={(row) => row.id}
        again={turn}
        onSort={(wanted) => refine({ sort: wanted })}
        empty={
          <p>
            The lists in which verifiers see what was revoked stand here. The first credential that can be revoked makes one, and so does{' '}
            <code>POST /status-lists</code>.
          </p>
        }
      />
    </>
  );
}
