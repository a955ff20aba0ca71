import { listAt, textAt } from '../../parts/json-paths.ts';
import { type Column, Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import type { PageProps } from '../../shell/page-props.ts';
import { goTo, linkTo, place, refine } from '../../shell/place.ts';
import { CredentialBuilder } from './credential-builder.tsx';

type Row = {
  readonly id: string;
  readonly config: unknown;
  readonly vct?: unknown;
  readonly statusManagement: boolean;
  readonly updatedAt: string;
};

const COLUMNS: readonly Column<Row>[] = [
  { title: 'Id', cell: ({ id }) => <a href={linkTo('credentials', id)}>{id}</a>, sort: { up: 'asc', down: 'desc' } },
  { title: 'Name', cell: ({ config }) => textAt(listAt(config, 'display')[0], 'name') || '–' },
  { title: 'Format', cell: ({ config }) => (textAt(config, 'format') === 'mso_mdoc' ? 'ISO mdoc' : 'SD-JWT VC') },
  { title: 'Type', cell: (row) => <code>{typeOf(row)}</code> },
  { title: 'Claims', cell: ({ config }) => listAt(config, 'claims').length },
  { title: 'Can be revoked', cell: ({ statusManagement }) => (statusManagement ? 'yes' : 'no') },
  { title: 'Changed', cell: ({ updatedAt }) => <Time at={updatedAt} /> },
];

function typeOf({ config, vct }: Row): string {
  return textAt(config, 'docType') || textAt(vct) || textAt(vct, 'vct') || 'hosted here';
}

export default function Credentials({ identity, id }: PageProps) {
  if (id !== '') return <CredentialBuilder identity={identity} id={id} />;
  const sort = place.value.query.get('sort') || 'asc';
  const maker = (
    <button type="button" class="quiet" onClick={() => goTo('credentials', 'new')}>
      New credential
    </button>
  );
  return (
    <>
      <h1>Credentials</h1>
      <p>{maker}</p>
      <Table<Row>
        identity={identity}
        caption="Credentials"
        path="/issuer/credentials"
        query={{ sort, limit: 25 }}
        columns={COLUMNS}
        rowKey={(row) => row.id}
        onSort={(wanted) => refine({ sort: wanted })}
        empty={
          <p>
            Each kind of credential that you issue stands here. The button above makes one, and so does{' '}
            <code>POST /issuer/credentials</code>.
          </p>
        }
      />
    </>
  );
}
