import { joinCompact } from '../../domain/formats/jose/compact.ts';
import { type KeyChain, signingChain } from '../../domain/keys/key-chain.ts';
import { signingKey } from '../../domain/keys/signing-key.ts';
import { encodeBase64url } from '../../domain/shared/base64url.ts';
import { thumbprint } from '../../domain/shared/jwk.ts';
import type { Kms } from '../ports/kms.ts';
import { getOrCreate } from '../tenant-cache/get-or-create.ts';

export type JwtToSign = {
  /** Signs with its active key; its certificates become `x5c`, without the trust anchor. */
  readonly chain: KeyChain;
  readonly typ: string;
  readonly payload: object;
  /** Further header parameters. They never replace `alg`, `typ`, `x5c`, `jwk` or `kid`. */
  readonly header?: Readonly<Record<string, unknown>>;
  /** Adds the public key to the header as `jwk` (RFC 7515 section 4.1.3). */
  readonly withJwk?: boolean;
  /** Adds the thumbprint of the key (RFC 7638) to the header as `kid`. */
  readonly withKid?: boolean;
};

/** Encoded headers by key chain; the objects live as long as the cached configuration. */
const encodedHeaders = new WeakMap<KeyChain, Map<string, string>>();

/**
 * Creates a compact JWS (RFC 7515 section 7.1). The algorithm follows from the key.
 * @throws Failure `unavailable` when the provider of the key does not answer.
 */
export async function signJwt(kms: Kms, request: JwtToSign): Promise<string> {
  const { chain, payload } = request;
  const signingInput = `${encodedHeader(request)}.${encodeBase64url(JSON.stringify(payload))}`;
  const signature = kms.sign(signingKey(chain.tenantId, chain.active.key), signingInput);
  // Local keys answer synchronously; awaiting the result would cost a turn of the event loop.
  return joinCompact(signingInput, signature instanceof Promise ? await signature : signature);
}

function encodedHeader(request: JwtToSign): string {
  const { chain, typ, header, withJwk = false, withKid = false } = request;
  if (header !== undefined) return encodeBase64url(JSON.stringify({ ...header, ...standardHeader(request) }));

  const headersOfChain = getOrCreate(encodedHeaders, chain, () => new Map<string, string>());
  return getOrCreate(headersOfChain, `${typ} ${withJwk} ${withKid}`, () => encodeBase64url(JSON.stringify(standardHeader(request))));
}

function standardHeader({ chain, typ, withJwk = false, withKid = false }: JwtToSign): object {
  const { handle, publicJwk } = chain.active.key;
  return {
    alg: handle.algorithm,
    typ,
    x5c: signingChain(chain),
    ...(withJwk && { jwk: publicJwk }),
    ...(withKid && { kid: thumbprint(publicJwk) }),
  };
}
