import { type Authorization, moveOn } from '../../domain/oauth/authorization.ts';
import type { NewGrant } from '../../domain/oauth/grant.ts';
import { CODE_LIFETIME_SECONDS, type GrantedAuthorization, type Identity } from '../../domain/oauth/grant.ts';
import type { UsedValue } from '../../domain/oauth/used-value.ts';
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

/** Ends authorizations with a code (RFC 6749 section 4.1.2). */
export class AuthorizationCodes extends needs({ store: Store, random: Random, settings: ServiceSettings }) {
  /**
   * @param yielded what the way to the code brought to light about the user.
   * @returns the code, or undefined when the authorization ended by another way meanwhile or its offer is over.
   */
  async grant(
    configured: TenantConfiguration,
    authorization: Authorization,
    now: Date,
    yielded: { readonly identity?: Identity; readonly presented?: readonly JsonObject[]; readonly used?: readonly UsedValue[] } = {},
  ): Promise<string | undefined> {
    const { store, random } = this.ports;
    const { request, holder, server, interaction } = authorization;
    const { credentialConfigurationIds: ids, codeChallenge, redirectUri, scope, queries } = request;
    const created =
      authorization.session === null
        ? await walletInitiatedSession(this.ports, configured, ids, now, { server: configured.issuerOf(server) })
        : undefined;
    const session: Pick<Session, 'id' | 'publicId'> | null = created ?? authorization.session;
    if (session === null) throw new Error('an authorization without a session');
    const code = random.token(256);
    const { identity, presented } = yielded;
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
    const done = moveOn(authorization, { stage: 'done', handles: {} });
    const change = {
      authorization: done,
      ...(created === undefined
        ? { opens: { grant }, session: { id: session.id, anytime: ISSUING_STATUSES } }
        : { opens: { grant, session: created }, serving: true as const }),
      uses: yielded.used ?? [],
    };
    return (await store.commit(configured.tenantId, change, now)).done ? code : undefined;
  }
}
