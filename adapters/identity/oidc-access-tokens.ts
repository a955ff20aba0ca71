import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { AccessTokens, type IssuedAccessToken, type VerifiedAccess } from '../../application/ports/access-tokens.ts';
import { AuthorizationServerError, type AuthorizationServers } from '../../application/ports/authorization-servers.ts';
import type { Clock } from '../../application/ports/clock.ts';
import type { Log } from '../../application/ports/log.ts';
import { boundedBytes } from '../../application/tenant-cache/cache-memory.ts';
import { type ExternalIdentityRules, parseExternalIdentity } from '../../domain/clients/external-identity.ts';
import { assertAccessToken, assertBearer, EXTERNAL_TOKEN_TYPES } from '../../domain/oauth/external-token.ts';
import { ForeignTokenError, type ForeignTokenReason } from '../../domain/oauth/foreign-token.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { AUDIENCE } from './local-access-tokens.ts';

type Ports = { readonly authorizationServers: AuthorizationServers; readonly clock: Clock; readonly log: Log };

type Settings = ExternalIdentityRules & {
  readonly issuer: string;
  /** The only signature algorithm that the provider uses. */
  readonly algorithm: string;
};

const MAX_TOKEN_BYTES = 8 * 1024 * 1024;
/** A token is verified again after this time, so that a withdrawn key of the provider does not count for long. */
const CACHE_TTL_MS = 60_000;

type CachedAccess = { readonly access: VerifiedAccess; readonly until: number };

/** Hints for the operator of the provider; the content of a token is never revealed. */
const REASON_MESSAGES: Partial<Record<ForeignTokenReason, string>> = {
  issuer: 'comes from another issuer than OIDC names',
  audience: `does not contain "${AUDIENCE}" in its aud`,
  expired: 'has expired',
  not_yet_valid: 'is not valid yet; check the clocks',
  type: 'has another type; typ must be at+jwt or JWT',
  id_token: 'is an ID token or another token; send the access token',
  key_binding: 'is bound to a key (cnf), but this API does not support proofs; let the provider issue a bearer token',
  unknown_key: 'is signed with a key that the provider does not publish',
  signature: 'is not signed by the provider',
};

/** Access tokens of an external OpenID provider (RFC 9068): its keys sign, its claims identify the caller. */
export class OidcAccessTokens extends AccessTokens {
  override readonly externalIssuer: string;
  readonly #ports: Ports;
  readonly #settings: Settings;
  readonly #verified = new LRUCache<string, CachedAccess>(boundedBytes(MAX_TOKEN_BYTES));

  constructor(ports: Ports, settings: Settings) {
    super();
    this.#ports = ports;
    this.#settings = settings;
    this.externalIssuer = settings.issuer;
  }

  override issue(): IssuedAccessToken {
    throw new Error('access tokens come from the external provider');
  }

  #describe(reason: ForeignTokenReason): string {
    const { algorithm, subjectClaim } = this.#settings;
    if (reason === 'algorithm') return `the access token is not signed with ${algorithm} (OIDC_ALGORITHM)`;
    if (reason === 'subject')
      return `the access token does not identify the client: it requires ${subjectClaim} (OIDC_SUB), and client_id or azp`;
    return `the access token ${REASON_MESSAGES[reason] ?? 'cannot be read'}`;
  }

  override async verify(token: string): Promise<VerifiedAccess | undefined> {
    const key = hash('sha256', token, 'base64url');
    const cached = this.#verified.get(key);
    const now = this.#ports.clock.now();
    if (cached !== undefined && now.getTime() < cached.until) return cached.access;
    const { issuer, algorithm } = this.#settings;
    try {
      const expected = { tenantId: undefined, audience: AUDIENCE, types: EXTERNAL_TOKEN_TYPES, now };
      const verified = await this.#ports.authorizationServers.verifyToken(issuer, token, expected);
      // RFC 8725 section 3.1: the operator chooses the algorithm.
      if (verified.algorithm !== algorithm) throw new ForeignTokenError('algorithm');
      assertAccessToken(verified.type, verified.claims);
      assertBearer(verified.claims);
      const identity = parseExternalIdentity(verified.claims, this.#settings);
      if (identity === undefined) throw new ForeignTokenError('subject');
      const ends = Number(verified.claims['exp']) * 1000;
      const access = { ...identity, isExternal: true, expiresAt: new Date(ends) } as const;
      this.#verified.set(key, { access, until: Math.min(now.getTime() + CACHE_TTL_MS, ends) });
      return access;
    } catch (error) {
      if (error instanceof ForeignTokenError) {
        this.#ports.log.info('access token rejected', { reason: error.reason });
        throw new Failure('unauthenticated', this.#describe(error.reason));
      }
      if (!(error instanceof AuthorizationServerError)) throw error;
      throw new Failure('unavailable', 'the identity provider cannot be reached at present', { cause: error });
    }
  }
}
