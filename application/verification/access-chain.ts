import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { isSameName } from '../../domain/formats/der/name.ts';
import { type KeyChain, leavesOf, selectKeyChain, signingChain } from '../../domain/keys/key-chain.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import { x509HashClientId, x509SanDnsClientId } from '../../domain/verification/request-object.ts';
import { getOrCreate } from '../tenant-cache/get-or-create.ts';

export type AccessIdentity = {
  readonly chain: KeyChain;
  /** The `x509_hash` client identifier of its certificate. */
  readonly clientId: string;
};

/** Client identifiers by key chain, whose objects live as long as the cached configuration. */
const clientIds = new WeakMap<KeyChain, string>();

/**
 * The signer of requests to wallets: the requested key chain, otherwise the tenant's first usable one for `access`.
 * @throws Failure `invalid_input` when there is none, it cannot be used, or wallets would reject its certificate.
 */
export function accessIdentity(chains: readonly KeyChain[], now: Date, wantedId: string | null | undefined): AccessIdentity {
  const chain = pick(chains, now, wantedId ?? undefined);
  return { chain, clientId: getOrCreate(clientIds, chain, () => clientIdOf(chain)) };
}

export type RequestSigner = AccessIdentity & {
  /** The `x509_hash` identifier if `clientId` is another one; it identifies the key later. */
  readonly signedAs?: string;
};

/**
 * The signer of a request, with the client identifier prefix of its configuration.
 * @param publicUrl base of the response address.
 * @throws Failure `invalid_input` as `accessIdentity`, or when the certificate does not contain the host of `publicUrl`.
 */
export function requestSigner(
  chains: readonly KeyChain[],
  { accessKeyChainId, clientIdPrefix }: Pick<PresentationConfiguration, 'accessKeyChainId' | 'clientIdPrefix'>,
  publicUrl: string,
  now: Date,
): RequestSigner {
  const identity = accessIdentity(chains, now, accessKeyChainId);
  if (clientIdPrefix !== 'x509_san_dns') return identity;
  const clientId = sanDnsClientId(identity.chain, new URL(publicUrl).hostname);
  return { chain: identity.chain, clientId, signedAs: identity.clientId };
}

/**
 * The `x509_san_dns` client identifier for responses that are posted to `host`.
 * @throws Failure `invalid_input` when the certificate does not contain that host.
 */
export function sanDnsClientId(chain: KeyChain, host: string): string {
  const [leaf = ''] = signingChain(chain);
  // OpenID4VP 1.0 section 5.9.3: a dNSName of the certificate, and the host of response_uri
  const names = parseCertificate(Buffer.from(leaf, 'base64'))?.x509.subjectAltName?.split(', ') ?? [];
  if (names.includes(`DNS:${host}`)) return x509SanDnsClientId(host);
  throw invalidInput(
    'clientIdPrefix',
    `The certificate of the key chain "${chain.id}" does not contain the host ${host}, which x509_san_dns requires.`,
  );
}

function pick(chains: readonly KeyChain[], now: Date, wantedId: string | undefined): KeyChain {
  try {
    return selectKeyChain(chains, 'access', now, wantedId);
  } catch (error) {
    if (error instanceof Failure) throw invalidInput('accessKeyChainId', error.message);
    throw error;
  }
}

/** @throws Failure `invalid_input` for a self-signed certificate. */
function clientIdOf(chain: KeyChain): string {
  const [leaf = ''] = signingChain(chain);
  const certificate = parseCertificate(Buffer.from(leaf, 'base64'));
  // HAIP 1.0 section 5: wallets reject a request that is signed with a self-signed certificate.
  if (certificate === undefined || isSameName(certificate.subject, certificate.issuer)) {
    throw invalidInput(
      'accessKeyChainId',
      `The certificate of the key chain "${chain.id}" is self-signed. Wallets require one that a CA issued.`,
    );
  }
  return x509HashClientId(leaf);
}

/**
 * The key of a client identifier, also after a rotation of the chain.
 * @returns undefined when no key chain has that certificate any more, or its key is compromised.
 */
export function chainOfClientId(chains: readonly KeyChain[], clientId: string): KeyChain | undefined {
  for (const chain of chains) {
    for (const leaf of leavesOf(chain)) {
      const [certificate] = leaf.certificates;
      if (leaf.revokedAt !== undefined) continue;
      if (certificate === undefined || x509HashClientId(certificate) !== clientId) continue;
      return leaf === chain.active ? chain : { ...chain, active: leaf };
    }
  }
  return undefined;
}
