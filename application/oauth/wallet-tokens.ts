import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { joinCompact, parseCompactJws } from '../../domain/formats/jose/compact.ts';
import { compromisedKeys } from '../../domain/keys/compromised-keys.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { selectKeyChain } from '../../domain/keys/key-chain.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { ACCESS_TOKEN_TYPE, accessTokenPayload, parseAccessTokenPayload, type WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import { encodeBase64url } from '../../domain/shared/base64url.ts';
import { algorithmOf, thumbprint } from '../../domain/shared/jwk.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Kms } from '../ports/kms.ts';
import { Signatures } from '../ports/signatures.ts';
import { Store } from '../ports/store.ts';
import { registerCache, shareOfCacheMemory } from '../tenant-cache/cache-memory.ts';
import { getOrCreate } from '../tenant-cache/get-or-create.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** Size of the cache of tokens that this process verified or issued. */
const MAX_CACHE_BYTES = 24 * 1024 * 1024;
const MAX_TOKEN_LENGTH = 8192;
/** Size of an entry without the claims of the token. */
const ENTRY_BYTES = 700;

type Verified = { readonly claims: WalletTokenClaims; readonly tokenLength: number };

/**
 * Cached by the key chain object and not by its id: during a rotation different steps may see the old or the new key, and a token
 * would name a key that did not sign it.
 */
const headers = new WeakMap<KeyChain, string>();

/** Access tokens of wallets, signed by a key chain of the tenant. */
export class WalletTokens extends needs({ kms: Kms, signatures: Signatures, clock: Clock, store: Store }) {
  readonly #verified = registerCache(
    'wallet-tokens',
    new LRUCache<string, Verified>({
      maxSize: shareOfCacheMemory(MAX_CACHE_BYTES),
      // The claims are contained in the token text, which is base64.
      sizeCalculation: ({ tokenLength }) => ENTRY_BYTES + 2 * tokenLength,
    }),
  );

  async issue(tenant: TenantConfiguration, claims: WalletTokenClaims, server: AuthorizationServer): Promise<string> {
    const { kms, clock } = this.ports;
    const keyChainId = await signingKeyId(tenant, server);
    const chain = selectKeyChain(await tenant.keyChains(), 'signing', clock.now(), keyChainId);
    const header = getOrCreate(headers, chain, () => headerOf(chain.active.key));
    const signingInput = `${header}.${encodeBase64url(JSON.stringify(accessTokenPayload(claims)))}`;
    const signature = await kms.sign(signingKey(tenant.tenantId, chain.active.key), signingInput);
    const token = joinCompact(signingInput, signature);
    this.#cacheToken(tenant, token, claims);
    return token;
  }

  /** @returns undefined for anything but a valid token of this tenant's issuer. */
  async verify(tenant: TenantConfiguration, token: string): Promise<WalletTokenClaims | undefined> {
    const claims = await this.#verify(tenant, token);
    // After a rollback of the database the grant may be lost with its revocation, so the fence decides.
    return claims && isIssuedSince(this.ports.store.fencedAt, claims) ? claims : undefined;
  }

  async #verify(tenant: TenantConfiguration, token: string): Promise<WalletTokenClaims | undefined> {
    const { signatures, clock } = this.ports;
    const now = clock.now();
    if (token.length > MAX_TOKEN_LENGTH) return undefined;
    const cachedClaims = this.#verified.get(memoKey(tenant, token))?.claims;
    if (cachedClaims !== undefined) return cachedClaims.expiresAtSeconds * 1000 > now.getTime() ? cachedClaims : undefined;
    const jws = parseCompactJws(token);
    // RFC 9068 section 4: another kind of token of this service must not pass for an access token
    if (jws === undefined || jws.header['typ'] !== ACCESS_TOKEN_TYPE) return undefined;
    const key = publicKeys(await tenant.keyChains(), now).find(({ publicJwk }) => thumbprint(publicJwk) === jws.header['kid']);
    if (key === undefined || jws.header['alg'] !== algorithmOf(key.publicJwk)) return undefined;
    if (!signatures.verify(key.publicJwk, jws.signingInput, jws.signature)) return undefined;
    const claims = parseAccessTokenPayload(jws.payload, tenant.issuer, now);
    if (claims !== undefined) this.#cacheToken(tenant, token, claims);
    return claims;
  }

  #cacheToken(tenant: TenantConfiguration, token: string, claims: WalletTokenClaims): void {
    this.#verified.set(memoKey(tenant, token), { claims, tokenLength: token.length });
  }
}

/** Tokens have a resolution of one second; none is issued yet in the second of the fence. */
function isIssuedSince(moment: Date | undefined, { issuedAtSeconds }: WalletTokenClaims): boolean {
  return moment === undefined || issuedAtSeconds >= Math.floor(moment.getTime() / 1000);
}

/** Contains the revision, so that removing a key invalidates the tokens it signed. The token is hashed, since it is ten times as long. */
function memoKey(tenant: TenantConfiguration, token: string): string {
  return `${tenant.tenantId} ${tenant.state.revision} ${hash('sha256', token, 'base64url')}`;
}

async function signingKeyId(tenant: TenantConfiguration, server: AuthorizationServer): Promise<string | undefined> {
  const { signingKeyId: tenantKeyId, chainedAs } = await tenant.issuance();
  return (server === 'chained' ? chainedAs?.token.signingKeyId : undefined) ?? tenantKeyId ?? undefined;
}

function headerOf(key: StoredKey): string {
  const header = { typ: ACCESS_TOKEN_TYPE, alg: algorithmOf(key.publicJwk), kid: thumbprint(key.publicJwk) };
  return encodeBase64url(JSON.stringify(header));
}

/** Keys that sign tokens, or signed tokens that are still valid; published as the JWKS. */
export function publicKeys(chains: readonly KeyChain[], now: Date): readonly StoredKey[] {
  const compromised = compromisedKeys(chains);
  const keys = chains
    .filter((chain) => chain.usages.includes('signing'))
    .flatMap(({ active, former = [] }) => [active, ...former.filter(({ keptUntil }) => keptUntil > now)])
    .map(({ key }) => [thumbprint(key.publicJwk), key] as const)
    .filter(([key]) => !compromised.has(key));
  return [...new Map(keys).values()];
}
