import { ask } from '../../api/call.ts';
import { Confirm } from '../../parts/confirm.tsx';
import type { NewSecret } from '../../parts/secret-shown.tsx';
import { enter, type Identity } from '../../shell/identities.ts';
import { RoleChoice, rolesOf } from './roles.tsx';

export type Client = {
  readonly clientId: string;
  readonly roles: readonly string[];
  readonly description: string | null;
  readonly allowedPresentationConfigs: readonly string[] | null;
  readonly allowedIssuanceConfigs: readonly string[] | null;
  readonly createdAt: string;
};

type Props = {
  readonly identity: Identity;
  readonly client: Client;
  readonly changed: () => void;
  readonly show: (secret: NewSecret) => void;
};

const pathOf = (clientId: string) => `/client/${encodeURIComponent(clientId)}`;

export function ClientActions({ identity, client, changed, show }: Props) {
  const { clientId, roles } = client;
  const isSelf = clientId === identity.clientId;
  if (!roles.every((role) => identity.roles.includes(role))) return <span class="fine">has roles that you do not have</span>;
  const change = async (form: FormData) => {
    const body = { roles: rolesOf(form), description: String(form.get('description')).trim() || null };
    await ask(identity, 'PATCH', pathOf(clientId), { body });
    changed();
    return `${clientId} has these roles now, also by tokens that are out already.`;
  };
  const rotate = async (form: FormData) => {
    const query = form.get('grace') === null ? {} : { graceSeconds: 300 };
    const path = `${pathOf(clientId)}/rotate-secret`;
    const { secret } = await ask<NewSecret>(identity, 'POST', path, { query });
    // The token of this page ended with the former secret.
    if (isSelf) await enter(clientId, secret);
    show({ clientId, secret });
    return `${clientId} has another secret.`;
  };
  const remove = async () => {
    await ask(identity, 'DELETE', pathOf(clientId));
    changed();
    return `${clientId} is gone.`;
  };
  return (
    <div class="acts">
      <Confirm label="Change" about={clientId} title={`What ${clientId} may do`} act={change}>
        <RoleChoice held={identity.roles} chosen={roles} />
        <label>
          Description
          <input name="description" maxLength={1000} defaultValue={client.description ?? ''} />
        </label>
      </Confirm>
      <Confirm label="New secret" about={clientId} title={`Another secret for ${clientId}?`} act={rotate}>
        <p>
          The former secret ends at once, and with it the access tokens that were had with it
          {isSelf && '. You go on here with the new one'}.
        </p>
        <label>
          <input type="checkbox" name="grace" /> Tokens that are out count for five more minutes
        </label>
      </Confirm>
      {!isSelf && (
        <Confirm label="Delete" about={clientId} title={`Delete ${clientId}?`} act={remove} isGrave>
          <p>Its access tokens end at once, and its id is free.</p>
        </Confirm>
      )}
    </div>
  );
}
