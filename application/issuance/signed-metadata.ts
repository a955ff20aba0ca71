import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { signJwt } from '../keys/sign-jwt.ts';
import type { Clock } from '../ports/clock.ts';
import type { Kms } from '../ports/kms.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';

type Ports = { readonly kms: Kms; readonly clock: Clock };

/** Not `openid4vci-…`: the specification spells it so. */
const TYPE = 'openidvci-issuer-metadata+jwt';
const LIFETIME_SECONDS = 24 * 3600;
/** A reader of the document has at least half a day with it. */
const RENEWAL_MS = 12 * 3600 * 1000;

type Kept = { current?: { readonly text: Promise<string>; readonly renewAt: number } };

/**
 * Issuer metadata as a JWT (OpenID4VCI 1.0 section 12.2.3), signed anew when half of its life is over.
 * @param variant tells documents of one tenant apart.
 * @param metadata whose members become claims of the same name.
 * @returns undefined when the tenant has no key to sign with at the moment.
 */
export async function signedMetadata(
  { kms, clock }: Ports,
  configured: TenantConfiguration,
  variant: string,
  metadata: JsonObject,
): Promise<string | undefined> {
  const now = clock.now();
  const chain = signerOf(await configured.keyChains(), now);
  if (chain === undefined) return undefined;
  const kept = configured.derive(`metadata/signed/${variant}`, (): Kept => ({}));
  if (kept.current !== undefined && now.getTime() < kept.current.renewAt) return kept.current.text;

  const iat = Math.floor(now.getTime() / 1000);
  const payload = { ...metadata, sub: metadata['credential_issuer'], iat, exp: iat + LIFETIME_SECONDS };
  const text = signJwt(kms, { chain, typ: TYPE, payload });
  const current = { text, renewAt: now.getTime() + RENEWAL_MS };
  kept.current = current;
  text.catch(() => {
    if (kept.current === current) delete kept.current;
  });
  return text;
}

/**
 * ETSI TS 119 472-3 requirement ISS-MDATA-4.2.1-02: the certificate by which a provider shows wallets who it is. A
 * tenant without one uses that of its credentials.
 */
function signerOf(chains: readonly KeyChain[], now: Date): KeyChain | undefined {
  const usable = chains.filter(({ active }) => active.notAfter > now);
  return (['access', 'signing'] as const)
    .map((usage) => usable.find(({ usages }) => usages.includes(usage)))
    .find((chain) => chain !== undefined);
}
