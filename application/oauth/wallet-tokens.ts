import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { joinCompact, parseCompactJws } from '../../domain/formats/jose/compact.ts';
import { compromisedKeys } from '../../domain/keys/compromised-keys.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { pickKeyChain } from '../../domain/keys/key-chain.ts';
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
import { partOfMemory, watchedCache } from '../tenant-cache/bounded.ts';
import { madeOnce } from '../tenant-cache/made-once.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** Tokens whose signature this process has seen to be good, or made itself. */
const MAX_REMEMBERED_BYTES = 24 * 1024 * 1024;
const MAX_TOKEN_LENGTH = 8192;
/** Of one of them, without what stands in the token. */
const ENTRY_BYTES = 700;

type Verified = { readonly claims: WalletTokenClaims; readonly tokenLength: number };

/**
 * By the chain itself and not by its id: one step may see the key of before a rotation, another that of afterwards, and a token
 * would name a key that it is not signed with.
 */
const headers = new WeakMap<KeyChain, string>();

/** Access tokens of wallets, signed by a key chain of the tenant. */
export class WalletTokens extends needs({ kms: Kms, signatures: Signatures, clock: Clock, store: Store }) {
  readonly #verified = watchedCache(
    'wallet-tokens',
    new LRUCache<string, Verified>({
      maxSize: partOfMemory(MAX_REMEMBERED_BYTES),
      // What a token says is in its text, at most in four characters for each three bytes.
      sizeCalculation: ({ tokenLength }) => ENTRY_BYTES + 2 * tokenLength,
    }),
  );

  async issue(configured: TenantConfiguration, claims: WalletTokenClaims, server: AuthorizationServer): Promise<string> {
    const { kms, clock } = this.ports;
    const wanted = await signingKeyId(configured, server);
    const chain = pickKeyChain(await configured.keyChains(), 'signing', clock.now(), wanted);
    const header = madeOnce(headers, chain, () => headerOf(chain.active.key));
    const signingInput = `${header}.${encodeBase64url(JSON.stringify(accessTokenPayload(claims)))}`;
    const signature = await kms.sign(signingKey(configured.tenantId, chain.active.key), signingInput);
    const token = joinCompact(signingInput, signature);
    this.#remember(configured, token, claims);
    return token;
  }

  /** @returns undefined for anything but a valid token of this tenant's issuer. */
  async verify(configured: TenantConfiguration, token: string): Promise<WalletTokenClaims | undefined> {
    const claims = await this.#verify(configured, token);
    // The grant of a token may be lost, and then nothing else tells that it was ended.
    return claims && isSince(this.ports.store.fencedAt, claims) ? claims : undefined;
  }

  async #verify(configured: TenantConfiguration, token: string): Promise<WalletTokenClaims | undefined> {
    const { signatures, clock } = this.ports;
    const now = clock.now();
    if (token.length > MAX_TOKEN_LENGTH) return undefined;
    const known = this.#verified.get(memoKey(configured, token))?.claims;
    if (known !== undefined) return known.expiresAtSeconds * 1000 > now.getTime() ? known : undefined;
    const jws = parseCompactJws(token);
    // RFC 9068 section 4: another kind of token of this service must not pass for an access token
    if (jws === undefined || jws.header['typ'] !== ACCESS_TOKEN_TYPE) return undefined;
    const key = publicKeys(await configured.keyChains(), now).find(({ publicJwk }) => thumbprint(publicJwk) === jws.header['kid']);
    if (key === undefined || jws.header['alg'] !== algorithmOf(key.publicJwk)) return undefined;
    if (!signatures.verify(key.publicJwk, jws.signingInput, jws.signature)) return undefined;
    const claims = parseAccessTokenPayload(jws.payload, configured.issuer, now);
    if (claims !== undefined) this.#remember(configured, token, claims);
    return claims;
  }

  #remember(configured: TenantConfiguration, token: string, claims: WalletTokenClaims): void {
    this.#verified.set(memoKey(configured, token), { claims, tokenLength: token.length });
  }
}

/** Tokens say the second alone; in that of the moment there is nobody yet who issues. */
function isSince(moment: Date | undefined, { issuedAtSeconds }: WalletTokenClaims): boolean {
  return moment === undefined || issuedAtSeconds >= Math.floor(moment.getTime() / 1000);
}

/** The revision stands in the key, so removing a key ends the tokens it signed. The token does not: it is ten times as long. */
function memoKey(configured: TenantConfiguration, token: string): string {
  return `${configured.tenantId} ${configured.state.revision} ${hash('sha256', token, 'base64url')}`;
}

async function signingKeyId(configured: TenantConfiguration, server: AuthorizationServer): Promise<string | undefined> {
  const { signingKeyId: own, chainedAs } = await configured.issuance();
  return (server === 'chained' ? chainedAs?.token.signingKeyId : undefined) ?? own ?? undefined;
}

function headerOf(key: StoredKey): string {
  const header = { typ: ACCESS_TOKEN_TYPE, alg: algorithmOf(key.publicJwk), kid: thumbprint(key.publicJwk) };
  return encodeBase64url(JSON.stringify(header));
}

/** Keys that sign tokens, or did and count still; published as the JWKS. One key can have had several certificates. */
export function publicKeys(chains: readonly KeyChain[], now: Date): readonly StoredKey[] {
  const compromised = compromisedKeys(chains);
  const keys = chains
    .filter((chain) => chain.usages.includes('signing'))
    .flatMap(({ active, former = [] }) => [active, ...former.filter(({ keptUntil }) => keptUntil > now)])
    .map(({ key }) => [thumbprint(key.publicJwk), key] as const)
    .filter(([key]) => !compromised.has(key));
  return [...new Map(keys).values()];
}
