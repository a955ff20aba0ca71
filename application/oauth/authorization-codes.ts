import { type Authorization, advance } from '../../domain/oauth/authorization.ts';
import type { ConsumedValue } from '../../domain/oauth/consumed-value.ts';
import type { NewGrant } from '../../domain/oauth/grant.ts';
import { CODE_LIFETIME_SECONDS, type GrantedAuthorization, type Identity } from '../../domain/oauth/grant.ts';
import { ISSUING_STATUSES, type Session } from '../../domain/sessions/session.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { walletInitiatedSession } from './offered-sessions.ts';
import { hashCode } from './pre-authorized-code-grant.ts';

/** Completes authorizations with a code (RFC 6749 section 4.1.2). */
export class AuthorizationCodes extends needs({ store: Store, random: Random, settings: ServiceSettings }) {
  /**
   * @param results identity and presented claims of the user, and values to consume.
   * @returns the code, or undefined when the authorization ended in another way meanwhile or its offer is over.
   */
  async grant(
    tenant: TenantConfiguration,
    authorization: Authorization,
    now: Date,
    results: { readonly identity?: Identity; readonly presented?: readonly JsonObject[]; readonly used?: readonly ConsumedValue[] } = {},
  ): Promise<string | undefined> {
    const { store, random } = this.ports;
    const { request, holder, server, interaction } = authorization;
    const { credentialConfigurationIds: ids, codeChallenge, redirectUri, scope, queries } = request;
    const createdSession =
      authorization.session === null
        ? await walletInitiatedSession(this.ports, tenant, ids, now, { server: tenant.issuerOf(server) })
        : undefined;
    const session: Pick<Session, 'id' | 'publicId'> | null = createdSession ?? authorization.session;
    if (session === null) throw new Error('an authorization without a session');
    const code = random.token(256);
    const { identity, presented } = results;
    const granted: GrantedAuthorization = {
      holder,
      ...defined({ codeChallenge, redirectUri, scope, identity, presented, queries }),
      code,
      authorizedAtMs: now.getTime(),
      byDetails: request.byDetails,
      ...(interaction !== undefined && { interactive: true, actionsDone: interaction.done }),
    };
    const grant: NewGrant = {
      id: random.token(),
      kind: 'authorization_code',
      server,
      sessionId: session.id,
      publicId: session.publicId,
      codeHash: hashCode(code),
      txCodeHash: null,
      credentialConfigurationIds: ids,
      expiresAt: new Date(now.getTime() + CODE_LIFETIME_SECONDS * 1000),
      authorization: granted,
    };
    const done = advance(authorization, { stage: 'done', handles: {} });
    const change = {
      authorization: done,
      ...(createdSession === undefined
        ? { opens: { grant }, session: { id: session.id, anytime: ISSUING_STATUSES } }
        : { opens: { grant, session: createdSession }, serving: true as const }),
      uses: results.used ?? [],
    };
    return (await store.commit(tenant.tenantId, change, now)).done ? code : undefined;
  }
}
