import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Caller } from '../caller.ts';
import type { AccessTokens } from '../ports/access-tokens.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import type { TenantViews } from '../steps/tenant-views.ts';

type Ports = {
  readonly accessTokens: AccessTokens;
  readonly store: Store;
  readonly tenantViews: TenantViews;
  readonly settings: ServiceSettings;
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
  ): Promise<Caller> {
    const { accessTokens, store, tenantViews, settings } = this.#ports;
    if (token === undefined)
      throw new Failure('unauthenticated', 'an access token is needed: Authorization: Bearer …');
    const claims = accessTokens.verify(token);
    if (claims === undefined) {
      throw new Failure(
        'unauthenticated',
        'the access token is invalid or expired; check its audience and the clocks',
      );
    }
    if (claims.subject === settings.rootClient.clientId && claims.clientId === claims.subject) {
      return { tenantId: null, clientId: claims.clientId, roles: ['tenants:manage'] };
    }
    const tenantId = claims.subject as TenantId;
    const latest = options.unconfirmed ? tenantViews.latest(tenantId)?.head : undefined;
    const head = latest ?? (await store.beats(tenantId).head());
    if (head === undefined)
      throw new Failure('unauthenticated', 'the client of this token does not exist any more');
    if (head.status !== 'active') throw new Failure('forbidden', 'the tenant is suspended');
    const view = tenantViews.of(head);
    const client = await view.client(claims.clientId);
    // A client made anew under an old name does not inherit the old one's tokens.
    if (client === undefined || claims.clientSince !== client.createdAt.getTime()) {
      throw new Failure('unauthenticated', 'the client of this token does not exist any more');
    }
    return {
      tenantId,
      clientId: client.clientId,
      roles: client.roles,
      allowedPresentationConfigs: client.allowedPresentationConfigs,
      allowedIssuanceConfigs: client.allowedIssuanceConfigs,
      view,
    };
  }
}
