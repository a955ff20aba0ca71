import { type CallbackContext, clientAuthenticationAnonymous, type Jwk, type JwtSigner, setGlobalConfig } from '@openid4vc/oauth2';
import { base64url, CompactEncrypt, importJWK, importX509, jwtVerify } from 'jose';
import { alternativeNames, pem, publicKeyOf } from './certificates.ts';
import type { Fetch } from './exchanges.ts';
import { digest, type HolderKey, newKey, randomBytes, signJwt } from './keys.ts';

/** Keys of a wallet, which the packages identify by their public part. */
export class Keys {
  readonly #keys = new Map<string, HolderKey>();
  readonly #areExportable: boolean;

  constructor(areExportable: boolean) {
    this.#areExportable = areExportable;
  }

  async make(): Promise<HolderKey> {
    const key = await newKey(this.#areExportable);
    this.#keys.set(key.publicJwk.x, key);
    return key;
  }

  of(signer: JwtSigner): HolderKey {
    const key = signer.method === 'jwk' ? this.#keys.get(String(signer.publicJwk['x'])) : undefined;
    if (key === undefined) throw new Error('the wallet has no such key');
    return key;
  }
}

export type DpopSigner = JwtSigner & { method: 'jwk' };

export function signerOf({ publicJwk }: HolderKey): DpopSigner {
  return { method: 'jwk', alg: 'ES256', publicJwk: { ...publicJwk } as Jwk };
}

/** Callbacks for signing, hashing and HTTP that the @openid4vc packages require. */
export function callbacksFor(keys: Keys, fetch: Fetch): CallbackContext {
  // The wallet accepts http for tests with loopback addresses.
  setGlobalConfig({ allowInsecureUrls: true });
  return {
    fetch: fetch as never,
    signJwt: async (signer, { header, payload }) => {
      const key = keys.of(signer);
      return { jwt: await signJwt(key, header, payload), signerJwk: { ...key.publicJwk } as Jwk };
    },
    hash: (data, alg) => digest(data, alg.toUpperCase()),
    generateRandom: (length) => randomBytes(length),
    clientAuthentication: clientAuthenticationAnonymous(),
    verifyJwt: verifyRequest,
    encryptJwe: async ({ alg, enc, publicJwk, kid, apu, apv }, data) => {
      const keyId = kid ?? publicJwk.kid;
      const header = { alg, enc, ...(keyId !== undefined && { kid: keyId }) };
      const jwe = new CompactEncrypt(new TextEncoder().encode(data)).setProtectedHeader(header);
      jwe.setKeyManagementParameters({
        ...(apu !== undefined && { apu: base64url.decode(apu) }),
        ...(apv !== undefined && { apv: base64url.decode(apv) }),
      });
      return { encryptionJwk: publicJwk, jwe: await jwe.encrypt(await importJWK(publicJwk as never, alg)) };
    },
    decryptJwe: () => ({ decrypted: false as const }),
    getX509CertificateMetadata: alternativeNames,
  };
}

/** Verifies the signature of a request object with the certificate in its header. */
async function verifyRequest(signer: JwtSigner, { compact }: { compact: string }) {
  const certificate = signer.method === 'x5c' ? signer.x5c[0] : undefined;
  if (certificate === undefined) return { verified: false as const };
  try {
    const key = await importX509(pem(certificate), signer.alg, { extractable: true });
    await jwtVerify(compact, key, { typ: 'oauth-authz-req+jwt', algorithms: [signer.alg] });
    return { verified: true as const, signerJwk: (await publicKeyOf(certificate, signer.alg)) as Jwk };
  } catch {
    return { verified: false as const };
  }
}
