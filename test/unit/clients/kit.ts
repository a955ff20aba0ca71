import { createSecretKey } from 'node:crypto';
import { LocalAccessTokens } from '../../../adapters/identity/local-access-tokens.ts';
import { AuthenticateClient } from '../../../application/clients/authenticate-client.ts';
import { IssueAccessToken } from '../../../application/clients/issue-access-token.ts';
import type { Client } from '../../../domain/clients/client.ts';
import type { Role } from '../../../domain/clients/role.ts';
import type { Tenant } from '../../../domain/tenants/tenant.ts';
import { ACME, aWorld } from '../administrators.ts';

export const ROOT_SECRET = 'the secret of the root client';
export const SHOP_SECRET = 'the secret of the shop';

/** A tenant with the client `shop`, and the use cases for access tokens. */
export async function aClientWorld() {
  const world = aWorld();
  const key = createSecretKey(Buffer.alloc(32, 4));
  const settings = { key, issuer: world.settings.publicUrl, lifetimeSeconds: 3600 };
  const accessTokens = new LocalAccessTokens(world, settings);
  const since = world.clock.now();

  /** Writes like another process, without an event in this one. So do the functions below. */
  const addClient = (changes: Partial<Client>) => {
    const base = { tenantId: ACME, description: null, allowedPresentationConfigs: null, pickUp: null };
    const defaults = { allowedIssuanceConfigs: ['card'], secretHash: '', version: 1, clientId: 'shop' };
    const revision = { secretRevision: 0, formerSecretUntil: null };
    const roles: Role[] = ['issuance:offer'];
    const client = { ...base, ...defaults, ...revision, roles, createdAt: since, updatedAt: since, ...changes };
    return world.store.forTenant(ACME, ({ clients }) => clients.add(client), { by: 'system' });
  };
  const setRoles = (roles: Role[]) =>
    world.store.forTenant(ACME, async ({ clients }) => clients.save({ ...(await clients.get('shop')), roles }), { by: 'system' });
  const setTenantStatus = (status: Tenant['status']) =>
    world.store.forTenant(ACME, async ({ tenant }) => tenant.save({ ...(await tenant.get()), status }), { by: 'system' });
  await world.createTenant({ roles: ['issuance:offer'] });
  await addClient({ secretHash: `hash of ${SHOP_SECRET}` });
  return {
    ...world,
    accessTokens,
    since,
    addClient,
    setRoles,
    setTenantStatus,
    authenticate: new AuthenticateClient({ ...world, accessTokens }),
    issue: new IssueAccessToken({ ...world, accessTokens }),
    /** Returns an access token of `shop`. */
    tokenOf: (changes: Partial<Parameters<LocalAccessTokens['issue']>[0]> = {}) => {
      const claims = { subject: ACME as string, clientId: 'shop', roles: ['issuance:offer'] as Role[] };
      return accessTokens.issue({ ...claims, clientSince: since.getTime(), secretRevision: 0, ...changes }).token;
    },
  };
}

export type ClientWorld = Awaited<ReturnType<typeof aClientWorld>>;
