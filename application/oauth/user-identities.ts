import { accessTokenPayload, type WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import type { Identity } from '../../domain/oauth/grant.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { needs } from '../needs.ts';
import { Store } from '../ports/store.ts';

export type User = {
  /** Absent where nobody was asked: a pre-authorized code is all that the issuer knows. */
  readonly identity?: Identity;
  /** What was presented in an interactive authorization. */
  readonly presented: readonly JsonObject[];
};

/** Who stands behind an access token, for the claims webhook. */
export class UserIdentities extends needs({ store: Store }) {
  async of(tenantId: TenantId, token: WalletTokenClaims): Promise<User> {
    if (token.foreignClaims !== undefined) {
      const { issuer: iss, subject: sub, foreignClaims } = token;
      return { identity: { iss, sub, token_claims: foreignClaims }, presented: [] };
    }
    const found =
      token.grantId === undefined ? undefined : await this.ports.store.read(tenantId).grant(token.grantId);
    const authorization = found?.grant?.authorization ?? null;
    if (authorization === null) return { presented: [] };
    const own = { iss: token.issuer, sub: token.subject, token_claims: accessTokenPayload(token) };
    return {
      identity: authorization.identity ?? own,
      presented: authorization.presented ?? [],
    };
  }
}
