import { useMemo, useState } from 'preact/hooks';
import { ask } from '../../api/call.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { type NewSecret, SecretShown } from '../../parts/secret-shown.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import type { PageProps } from '../../shell/page-props.ts';
import { type Client, ClientActions } from './client-actions.tsx';
import { ROLES, RoleChoice, rolesOf } from './roles.tsx';

/** The clients of a tenant against what each may do. */
export default function Clients({ identity }: PageProps) {
  const [turn, setTurn] = useState(0);
  const [secret, setSecret] = useState<NewSecret>();
  const columns = useMemo(() => {
    const changed = () => setTurn((before) => before + 1);
    const actions: Column<Client> = {
      title: 'Actions',
      cell: (client) => <ClientActions identity={identity} client={client} changed={changed} show={setSecret} />,
    };
    return [NAME, ...ROLES.map(([role]) => roleColumn(role)), LIMITS, MADE, actions];
  }, [identity]);
  const create = async (form: FormData) => {
    const clientId = String(form.get('id'));
    const description = String(form.get('description')).trim() || null;
    await ask(identity, 'POST', '/client', { body: { clientId, roles: rolesOf(form), description } });
    setTurn(turn + 1);
    setSecret({ clientId, ...(await ask<{ secret: string }>(identity, 'GET', `/client/${clientId}/secret`)) });
    return `${clientId} is there.`;
  };
  return (
    <>
      <h1>Clients</h1>
      <p>
        A client is a program, or a person with this console. Rights count as they are written here, at once, also those of tokens that are
        out.
      </p>
      <p>
        <Confirm label="New client" title="New client" act={create}>
          <label>
            Id, unique in the whole service
            <input name="id" required pattern="[A-Za-z0-9][A-Za-z0-9._:@\-]{0,127}" spellcheck={false} autocapitalize="none" />
          </label>
          <label>
            Description
            <input name="description" maxLength={1000} />
          </label>
          <RoleChoice held={identity.roles} />
        </Confirm>
      </p>
      <div class="matrix">
        <Table<Client>
          identity={identity}
          caption="Clients and their roles"
          path="/client"
          query={{}}
          columns={columns}
          rowKey={({ clientId }) => clientId}
          again={turn}
          empty={<p>Programs that call the interface stand here, each with the roles it needs and no others.</p>}
        />
      </div>
      {secret !== undefined && (
        <SecretShown
          of={secret.clientId}
          secret={secret.secret}
          hint="Put it where the client reads it now."
          close={() => setSecret(undefined)}
        />
      )}
    </>
  );
}

const NAME: Column<Client> = {
  title: 'Client',
  cell: ({ clientId, description }) => (
    <span>
      <code>{clientId}</code>
      {description !== null && <span class="fine about">{description}</span>}
    </span>
  ),
};
const LIMITS: Column<Client> = {
  title: 'Limited to',
  cell: ({ allowedIssuanceConfigs, allowedPresentationConfigs }) => {
    const names = [...(allowedIssuanceConfigs ?? []), ...(allowedPresentationConfigs ?? [])];
    return names.length === 0 ? 'all' : names.join(', ');
  },
};
const MADE: Column<Client> = { title: 'Made', cell: ({ createdAt }) => <Time at={createdAt} /> };

function roleColumn(role: string): Column<Client> {
  return {
    // It may break behind the colon.
    title: role.replace(':', ':\u200b'),
    cell: ({ roles }) =>
      roles.includes(role) ? (
        <span class="yes">
          <span aria-hidden="true">●</span> <span class="hidden">yes</span>
        </span>
      ) : (
        <span class="no">
          <span aria-hidden="true">·</span> <span class="hidden">no</span>
        </span>
      ),
  };
}
