import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { SERVING } from '../../domain/tenants/tenant.ts';
import type { Caller, Listener, RememberedCaller, ServiceCaller, TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { AccessTokens, type VerifiedAccess } from '../ports/access-tokens.ts';
import { Clock } from '../ports/clock.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { sinceOfRoot } from './issue-access-token.ts';
import { type NoRights, rightsOf } from './rights.ts';

const NO_RIGHTS: Readonly<Record<NoRights, string>> = {
  removed: 'the client of this token was removed; it counts again when it is made anew',
  replaced: 'the secret of the client of this token was replaced; get a token with the new one',
  gone: 'the client of this token does not exist any more',
};

/** Makes a request of a tenant wait until it is its turn; nothing where that is now. */
export type Turn = (tenantId: string) => Promise<void> | undefined;

/** Turns an access token into a caller with the rights of this moment. */
export class AuthenticateClient extends needs({
  accessTokens: AccessTokens,
  store: Store,
  tenantConfigurations: TenantConfigurations,
  settings: ServiceSettings,
  clock: Clock,
}) {
  /**
   * @param turn goes before the database is read; may make this wait, so that tenants share it.
   * @throws Failure `unauthenticated` for a bad token, or one whose client or tenant is gone; `forbidden` for a
   *   suspended tenant.
   */
  async execute(token: string | undefined, turn?: Turn): Promise<Listener | ServiceCaller> {
    const access = await this.#verify(token);
    return 'tenantId' in access ? access : this.#callerOf(access, await this.#stored(access, turn));
  }

  /**
   * As this process knew the tenant last, where it knows it; a refusal is judged by what is stored.
   * @param admit throws for a caller that may not call here.
   * @param turn as of `execute`.
   * @throws Failure as `execute`, and what `admit` throws.
   */
  async remembered(token: string | undefined, admit: (caller: Caller) => void, turn?: Turn): Promise<RememberedCaller | ServiceCaller> {
    const access = await this.#verify(token);
    if ('tenantId' in access) {
      admit(access);
      return access;
    }
    const again = async (configured: TenantConfiguration) => {
      const caller = await this.#callerOf(access, configured);
      admit(caller);
      return caller;
    };
    const { configured, ...rest } = await this.#admitted(access, again, turn);
    return { ...rest, remembered: configured, again };
  }

  async #admitted(
    access: VerifiedAccess,
    judge: (configured: TenantConfiguration) => Promise<TenantCaller>,
    turn: Turn | undefined,
  ): Promise<TenantCaller> {
    const latest = this.ports.tenantConfigurations.latest(access.subject as TenantId);
    if (latest === undefined) return judge(await this.#stored(access, turn));
    try {
      return await judge(latest);
    } catch (error) {
      const stored = await this.#stored(access, turn);
      if (latest.isWholly(stored.state)) throw error;
      return judge(stored);
    }
  }

  async #stored({ subject }: VerifiedAccess, turn: Turn | undefined): Promise<TenantConfiguration> {
    const { store, tenantConfigurations } = this.ports;
    await turn?.(subject);
    return tenantConfigurations.ofCaller(await store.read(subject as TenantId).state());
  }

  async #callerOf(access: VerifiedAccess, configured: TenantConfiguration): Promise<Listener> {
    if (configured.state.status !== SERVING) throw new Failure('forbidden', 'the tenant is suspended');
    const rights = await rightsOf(access, configured, this.ports.clock.now());
    if (typeof rights === 'string') throw new Failure('unauthenticated', NO_RIGHTS[rights]);
    const { clientId } = access;
    return { tenantId: configured.tenantId, clientId, ...personOf(access), configured, access, ...rights };
  }

  /** @returns what the token says, or the caller itself when it manages tenants. */
  async #verify(token: string | undefined): Promise<VerifiedAccess | ServiceCaller> {
    const { accessTokens, settings } = this.ports;
    if (token === undefined) throw new Failure('unauthenticated', 'an access token is needed: Authorization: Bearer …');
    const verified = accessTokens.verify(token);
    // Our own tokens are judged at once; waiting for them would cost a turn of the event loop.
    const claims = verified instanceof Promise ? await verified : verified;
    if (claims === undefined) {
      throw new Failure(
        'unauthenticated',
        'the access token is invalid or expired, or was made under a former MASTER_SECRET; check its audience and the clocks',
      );
    }
    if (!managesTenants(claims, settings)) return claims;
    return { tenantId: null, clientId: claims.clientId, ...personOf(claims), roles: ['tenants:manage'] };
  }
}

function personOf(access: VerifiedAccess): { readonly person?: string } {
  return access.isExternal && access.person !== undefined ? { person: access.person } : {};
}

/** An account without a tenant names itself in place of one. */
function managesTenants(access: VerifiedAccess, settings: ServiceSettings) {
  const { subject, clientId, roles } = access;
  if (subject !== clientId) return false;
  if (access.isExternal) return roles.includes('tenants:manage');
  return clientId === settings.rootClient.clientId && access.clientSince === sinceOfRoot(settings);
}
