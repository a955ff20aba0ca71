import { type Column, Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import type { PageProps } from '../../shell/page-props.ts';
import { goTo, linkTo, place, refine } from '../../shell/place.ts';
import { kindsOf, sentenceOf } from './question.ts';
import { QuestionBuilder } from './question-builder.tsx';

type Row = {
  readonly id: string;
  readonly description?: string | null;
  readonly trustAnchors: readonly unknown[];
  readonly updatedAt: string;
};

const KINDS = kindsOf([]);
const COLUMNS: readonly Column<Row>[] = [
  { title: 'Id', cell: ({ id }) => <a href={linkTo('questions', id)}>{id}</a>, sort: { up: 'asc', down: 'desc' } },
  { title: 'In words', cell: (row) => sentenceOf(row, KINDS) },
  { title: 'Description', cell: ({ description }) => description || '–' },
  { title: 'Trusts', cell: ({ trustAnchors }) => trustAnchors.length },
  { title: 'Changed', cell: ({ updatedAt }) => <Time at={updatedAt} /> },
];

export default function Questions({ identity, id }: PageProps) {
  if (id !== '') return <QuestionBuilder identity={identity} id={id} />;
  const sort = place.value.query.get('sort') || 'asc';
  return (
    <>
      <h1>Questions</h1>
      {identity.roles.includes('presentation:manage') && (
        <p>
          <button type="button" class="quiet" onClick={() => goTo('questions', 'new')}>
            New question
          </button>
        </p>
      )}
      <Table<Row>
        identity={identity}
        caption="Questions"
        path="/verifier/config"
        query={{ sort, limit: 25 }}
        columns={COLUMNS}
        rowKey={(row) => row.id}
        onSort={(wanted) => refine({ sort: wanted })}
        empty={
          <p>
            Each question that wallets are asked stands here. Somebody with the role <code>presentation:manage</code> makes one with the
            button above, or by <code>POST /verifier/config</code>.
          </p>
        }
      />
    </>
  );
}
