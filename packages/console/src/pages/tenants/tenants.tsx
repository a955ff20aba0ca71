import { useState } from 'preact/hooks';
import { ask } from '../../api/call.ts';
import { logIn } from '../../api/log-in.ts';
import { Badge } from '../../parts/badge.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { type NewSecret, SecretShown } from '../../parts/secret-shown.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { know } from '../../shell/identities.ts';
import type { PageProps } from '../../shell/page-props.ts';
import { goTo, linkTo } from '../../shell/place.ts';
import { TenantPage } from './tenant.tsx';

type Tenant = {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly profile?: string | null;
  readonly createdAt: string;
};
type Created = Tenant & { readonly clients?: readonly NewSecret[] };

const ROLES = [
  'clients:manage',
  'issuance:manage',
  'issuance:offer',
  'presentation:manage',
  'presentation:request',
  'registrar:manage',
] as const;

const COLUMNS: readonly Column<Tenant>[] = [
  { title: 'Id', cell: ({ id }) => <a href={linkTo('tenants', id)}>{id}</a> },
  { title: 'Name', cell: ({ name }) => name },
  { title: 'Status', cell: ({ status }) => <Badge status={status} /> },
  { title: 'Profile', cell: ({ profile }) => profile ?? '–' },
  { title: 'Made', cell: ({ createdAt }) => <Time at={createdAt} /> },
];

/** All tenants, for accounts that manage them. */
export default function Tenants({ identity, id }: PageProps) {
  return id === '' ? <TenantList identity={identity} /> : <TenantPage identity={identity} id={id} />;
}

function TenantList({ identity }: Pick<PageProps, 'identity'>) {
  const [made, setMade] = useState<NewSecret & { readonly tenantId: string }>();
  const create = async (form: FormData) => {
    const body = { id: String(form.get('id')), name: String(form.get('name')), roles: ROLES };
    const { clients = [] } = await ask<Created>(identity, 'POST', '/tenant', { body });
    const [administrator] = clients;
    if (administrator === undefined) {
      goTo('tenants', body.id);
      return `Tenant ${body.id} is there.`;
    }
    setMade({ ...administrator, tenantId: body.id });
    know(await logIn(administrator.clientId, administrator.secret));
    return `Tenant ${body.id} is there, and you are logged in as its administrator, too.`;
  };
  const maker = (
    <Confirm label="New tenant" title="New tenant" act={create}>
      <label>
        Id, the first part of all its addresses: lower-case letters, digits and hyphens
        <input name="id" required pattern="[a-z0-9][a-z0-9\-]{0,62}" spellcheck={false} autocapitalize="none" />
      </label>
      <label>
        Name, for people
        <input name="name" required maxLength={200} />
      </label>
      <p class="fine">Its administrator gets all roles. Its secret is shown once, and you are logged in as that client, too.</p>
    </Confirm>
  );
  return (
    <>
      <h1>Tenants</h1>
      <p>{maker}</p>
      <Table<Tenant>
        identity={identity}
        caption="Tenants"
        path="/tenant"
        query={{}}
        columns={COLUMNS}
        rowKey={({ id }) => id}
        empty={<p>Issuers and verifiers stand here, each with keys, clients and sessions of its own.</p>}
      />
      {made !== undefined && (
        <SecretShown
          of={made.clientId}
          secret={made.secret}
          hint="Whoever administers the tenant logs in with it: keep it where secrets are kept."
          close={() => goTo('tenants', made.tenantId)}
        />
      )}
    </>
  );
}
