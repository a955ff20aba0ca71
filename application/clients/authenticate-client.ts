import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Listener, ServiceCaller } from '../caller.ts';
import type { AccessTokens, VerifiedAccess } from '../ports/access-tokens.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfigurations } from '../tenant-configuration.ts';
import { type NoRights, rightsOf } from './rights.ts';

type Ports = {
  readonly accessTokens: AccessTokens;
  readonly store: Store;
  readonly tenantConfigurations: TenantConfigurations;
  readonly settings: ServiceSettings;
};

const NO_RIGHTS: Readonly<Record<NoRights, string>> = {
  removed: 'the client of this token was removed; it counts again when it is made anew',
  gone: 'the client of this token does not exist any more',
};

/** Turns an access token into a caller with the rights of this moment. */
export class AuthenticateClient {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @param options `unconfirmed`: as this process knew the tenant last; the use case has to confirm it.
   * @throws Failure `unauthenticated` for a bad token, or one whose client or tenant is gone; `forbidden` for a
   *   suspended tenant.
   */
  async execute(
    token: string | undefined,
    options: { readonly unconfirmed?: boolean } = {},
  ): Promise<Listener | ServiceCaller> {
    const { accessTokens, store, tenantConfigurations, settings } = this.#ports;
    if (token === undefined)
      throw new Failure('unauthenticated', 'an access token is needed: Authorization: Bearer …');
    const verified = accessTokens.verify(token);
    // Our own tokens are judged at once; waiting for them would cost a turn of the event loop.
    const claims = verified instanceof Promise ? await verified : verified;
    if (claims === undefined) {
      throw new Failure(
        'unauthenticated',
        'the access token is invalid or expired; check its audience and the clocks',
      );
    }
    if (managesTenants(claims, settings)) {
      return { tenantId: null, clientId: claims.clientId, roles: ['tenants:manage'] };
    }
    const tenantId = claims.subject as TenantId;
    const latest = options.unconfirmed ? tenantConfigurations.latest(tenantId)?.head : undefined;
    const head = latest ?? (await store.beats(tenantId).head());
    if (head === undefined)
      throw new Failure('unauthenticated', 'the client of this token does not exist any more');
    if (head.status !== 'active') throw new Failure('forbidden', 'the tenant is suspended');
    const configured = tenantConfigurations.of(head);
    const rights = await rightsOf(claims, configured);
    if (typeof rights === 'string') throw new Failure('unauthenticated', NO_RIGHTS[rights]);
    return { tenantId, clientId: claims.clientId, configured, access: claims, ...rights };
  }
}

/** An account without a tenant names itself in place of one. */
function managesTenants({ subject, clientId, roles, isExternal }: VerifiedAccess, settings: ServiceSettings) {
  if (subject !== clientId) return false;
  return isExternal ? roles.includes('tenants:manage') : clientId === settings.rootClient.clientId;
}
