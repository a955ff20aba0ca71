export const ROLES = [
  ['issuance:manage', 'How the tenant issues, credentials, status and trust lists, keys for signing'],
  ['issuance:offer', 'Offers, deferred credentials, revocation'],
  ['presentation:manage', 'Questions and requests, keys for access'],
  ['presentation:request', 'Requests'],
  ['registrar:manage', 'The login at the registrar, and what is ordered there'],
  ['clients:manage', 'Clients of the tenant, and its audit log'],
] as const;

type Props = { readonly held: readonly string[]; readonly chosen?: readonly string[] };

export function RoleChoice({ held, chosen = [] }: Props) {
  return (
    <fieldset>
      <legend>Roles</legend>
      {ROLES.map(([role, opens]) => (
        <label key={role}>
          <input type="checkbox" name="roles" value={role} defaultChecked={chosen.includes(role)} disabled={!held.includes(role)} />
          <code>{role}</code> <span class="fine">{held.includes(role) ? opens : 'you do not have it'}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** @throws Error where none was chosen. */
export function rolesOf(form: FormData): string[] {
  const roles = form.getAll('roles').map(String);
  if (roles.length === 0) throw new Error('Choose at least one role.');
  return roles;
}
