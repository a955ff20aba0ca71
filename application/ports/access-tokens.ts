import type { Role } from '../../domain/clients/role.ts';

/** What an administrative access token says. */
export type AccessTokenClaims = {
  /** Tenant id; for a client without tenant its own id. */
  readonly subject: string;
  readonly clientId: string;
  readonly roles: readonly Role[];
  /** When the client was made, in milliseconds: tells it from one made later under the same name. */
  readonly clientSince: number;
};

/** Access tokens of the administrative interface (not those of wallets). */
export abstract class AccessTokens {
  abstract issue(claims: AccessTokenClaims): {
    readonly token: string;
    readonly expiresInSeconds: number;
  };
  /** @returns undefined for anything that is not a valid, unexpired token of ours for this service. */
  abstract verify(token: string): AccessTokenClaims | undefined;
}
