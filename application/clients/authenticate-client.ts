import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { SERVING } from '../../domain/tenants/tenant.ts';
import type { CachedCaller, Caller, Listener, ServiceCaller, TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { AccessTokens, type VerifiedAccess } from '../ports/access-tokens.ts';
import { Clock } from '../ports/clock.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { rootClientSince } from './issue-access-token.ts';
import { type NoRights, rightsOf } from './rights.ts';

const NO_RIGHTS: Readonly<Record<NoRights, string>> = {
  removed: 'the client of this token was removed; the token is valid again if the client is created again',
  replaced: 'the secret of the client of this token was replaced; get a token with the new one',
  gone: 'the client of this token no longer exists',
};

/** Delays a request until its tenant may use the database; undefined if it may now. */
export type AwaitTurn = (tenantId: string) => Promise<void> | undefined;

/** Turns an access token into a caller with its current rights. */
export class AuthenticateClient extends needs({
  accessTokens: AccessTokens,
  store: Store,
  tenantConfigurations: TenantConfigurations,
  settings: ServiceSettings,
  clock: Clock,
}) {
  /**
   * @param turn is awaited before the database is read, so that tenants share it fairly.
   * @throws Failure `unauthenticated` for an invalid token, or one of a removed client or tenant; `forbidden` for a
   *   suspended tenant.
   */
  async execute(token: string | undefined, turn?: AwaitTurn): Promise<Listener | ServiceCaller> {
    const access = await this.#verify(token);
    return 'tenantId' in access ? access : this.#callerOf(access, await this.#readTenant(access, turn));
  }

  /**
   * Uses the cached state of the tenant; a rejection is verified with the stored one.
   * @param admit throws for a caller that may not call here.
   * @param turn as in `execute`.
   * @throws Failure as `execute`, and the failures of `admit`.
   */
  async executeCached(token: string | undefined, admit: (caller: Caller) => void, turn?: AwaitTurn): Promise<CachedCaller | ServiceCaller> {
    const access = await this.#verify(token);
    if ('tenantId' in access) {
      admit(access);
      return access;
    }
    const reauthorize = async (tenant: TenantConfiguration) => {
      const caller = await this.#callerOf(access, tenant);
      admit(caller);
      return caller;
    };
    const { tenant, ...callerFields } = await this.#authorizeCached(access, reauthorize, turn);
    return { ...callerFields, cachedTenant: tenant, reauthorize };
  }

  async #authorizeCached(
    access: VerifiedAccess,
    authorize: (tenant: TenantConfiguration) => Promise<TenantCaller>,
    turn: AwaitTurn | undefined,
  ): Promise<TenantCaller> {
    const latest = this.ports.tenantConfigurations.latest(access.subject as TenantId);
    if (latest === undefined) return authorize(await this.#readTenant(access, turn));
    try {
      return await authorize(latest);
    } catch (error) {
      const storedTenant = await this.#readTenant(access, turn);
      if (latest.isUpToDate(storedTenant.state)) throw error;
      return authorize(storedTenant);
    }
  }

  async #readTenant({ subject }: VerifiedAccess, turn: AwaitTurn | undefined): Promise<TenantConfiguration> {
    const { store, tenantConfigurations } = this.ports;
    await turn?.(subject);
    return tenantConfigurations.admitClient(await store.read(subject as TenantId).state());
  }

  async #callerOf(access: VerifiedAccess, tenant: TenantConfiguration): Promise<Listener> {
    if (tenant.state.status !== SERVING) throw new Failure('forbidden', 'the tenant is suspended');
    const rights = await rightsOf(access, tenant, this.ports.clock.now());
    if (typeof rights === 'string') throw new Failure('unauthenticated', NO_RIGHTS[rights]);
    const { clientId } = access;
    return { tenantId: tenant.tenantId, clientId, ...personOf(access), tenant, access, ...rights };
  }

  /** @returns the claims of the token, or the caller itself when it manages tenants. */
  async #verify(token: string | undefined): Promise<VerifiedAccess | ServiceCaller> {
    const { accessTokens, settings } = this.ports;
    if (token === undefined) throw new Failure('unauthenticated', 'an access token is required: Authorization: Bearer …');
    const verified = accessTokens.verify(token);
    // Tokens of this service are verified synchronously; awaiting them would cost a turn of the event loop.
    const claims = verified instanceof Promise ? await verified : verified;
    if (claims === undefined) {
      throw new Failure(
        'unauthenticated',
        'the access token is invalid or expired, or was issued under a former MASTER_SECRET; check its audience and the clocks',
      );
    }
    if (!managesTenants(claims, settings)) return claims;
    return { tenantId: null, clientId: claims.clientId, ...personOf(claims), roles: ['tenants:manage'] };
  }
}

function personOf(access: VerifiedAccess): { readonly person?: string } {
  return access.isExternal && access.person !== undefined ? { person: access.person } : {};
}

/** The token of an account without a tenant has the client id as its subject. */
function managesTenants(access: VerifiedAccess, settings: ServiceSettings) {
  const { subject, clientId, roles } = access;
  if (subject !== clientId) return false;
  if (access.isExternal) return roles.includes('tenants:manage');
  return clientId === settings.rootClient.clientId && access.clientSince === rootClientSince(settings);
}
