import { Problem } from '../../parts/problem.tsx';
import { sentence } from '../../parts/sentence.ts';
import { type Column, Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { useAsked } from '../../parts/use-asked.ts';
import type { PageProps } from '../../shell/page-props.ts';
import type { Ending } from '../trust/resting.ts';
import { nearness } from './nearness.ts';

const COLUMNS: readonly Column<Ending>[] = [
  { title: 'Ends', cell: ({ endsAt }) => <End at={endsAt} /> },
  { title: 'What', cell: ({ kind }) => kind },
  { title: 'Name', cell: ({ name }) => name },
  { title: 'Fails then', cell: ({ affects: { issuance, presentation } }) => [...issuance, ...presentation].join(', ') || 'nothing' },
  { title: 'What to do', cell: ({ renews, advice }) => (renews ? 'Nothing: it renews itself before that.' : sentence(advice)) },
];

/** All that ends, the soonest first: of the tenant, or the tenants themselves for accounts that manage them. */
export default function Calendar({ identity }: PageProps) {
  return (
    <>
      <h1>Calendar</h1>
      {identity.tenantId === undefined ? (
        <Tenants identity={identity} />
      ) : (
        <Table<Ending>
          identity={identity}
          caption="What ends, the soonest first"
          path="/trust/forecast"
          query={{ limit: 50 }}
          columns={COLUMNS}
          rowKey={({ kind, id }) => `${kind} ${id}`}
          empty={<p>Certificates, keys and lists stand here that the roles of this client are about.</p>}
        />
      )}
    </>
  );
}

type Tenant = { readonly id: string; readonly name: string; readonly endsAt: string | null };

function Tenants({ identity }: Pick<PageProps, 'identity'>) {
  const { value, fault } = useAsked<readonly Tenant[]>(identity, '/tenant');
  if (fault !== undefined) return <Problem fault={fault} />;
  if (value === undefined) return <p aria-busy="true">Reading the tenants</p>;
  const ending = value
    .flatMap(({ endsAt, ...tenant }) => (endsAt === null ? [] : [{ ...tenant, endsAt }]))
    .sort((tenant, otherTenant) => tenant.endsAt.localeCompare(otherTenant.endsAt));
  if (ending.length === 0)
    return (
      <p class="empty">
        No tenant ends by itself. One that is made with <code>endsAt</code> stands here, and is removed then.
      </p>
    );
  return (
    <>
      <p>These tenants are removed with everything that is theirs.</p>
      <ul>
        {ending.map(({ id, name, endsAt }) => (
          <li key={id}>
            {name} <code>{id}</code> <End at={endsAt} />
          </li>
        ))}
      </ul>
    </>
  );
}

/** The word says what the colour does. */
function End({ at }: { readonly at: string }) {
  const { word, tone } = nearness(new Date(at), new Date());
  return (
    <span>
      <span class={`badge ${tone}`}>{word}</span> <Time at={at} />
    </span>
  );
}
