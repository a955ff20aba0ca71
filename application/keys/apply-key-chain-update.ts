import type { KeyChain, KeyLeaf } from '../../domain/keys/key-chain.ts';
import type { KeyChainUpdate } from '../../domain/keys/key-chain-input.ts';
import { assertRotationFits, replaceActiveLeaf } from '../../domain/keys/rotation.ts';
import { assertSelfSignedUsage, isSelfSigned } from '../../domain/keys/self-signed.ts';
import { isSameHandle } from '../../domain/keys/signing-key.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { CertificateAuthority } from '../ports/certificate-authority.ts';
import type { Clock } from '../ports/clock.ts';
import type { TenantRepositories } from '../ports/repositories.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import { certifyDocumentSigner, leafOf, type SubjectOrganization } from './certify-leaf.ts';
import { assertNoAnchor, assertNotLast, assertUnusedFor } from './key-references.ts';
import { assertUsagesFit, parseCertificates } from './parse-certificates.ts';

/** Paths of properties in the caller's document, for error messages. */
export type UpdatePaths = { readonly certificates: string; readonly usages: string };

type Change = KeyChainUpdate & {
  /** The current leaf with a new certificate for mdocs, if it needs one. */
  readonly signer: KeyLeaf | undefined;
};

/**
 * Applies an update to a key chain.
 * @throws Failure `conflict` when a removed usage or internal CA is in use, or the key chain was rotated
 *   meanwhile; `invalid_input` for certificates that do not match the key or its usages.
 */
export async function applyUpdate(
  repositories: TenantRepositories,
  storedChain: KeyChain,
  update: Change,
  now: Date,
  paths: UpdatePaths,
): Promise<KeyChain> {
  if (update.usages?.length === 0 && storedChain.usages.length > 0) throw invalidInput(paths.usages, 'at least one is needed');
  const updatedChain = { ...settingsOf(storedChain, update), updatedAt: now };
  assertRotationFits(updatedChain);
  const removedUsages = storedChain.usages.filter((usage) => !updatedChain.usages.includes(usage));
  await assertUnusedFor(repositories, storedChain.id, removedUsages);
  await assertNotLast(repositories, storedChain, removedUsages, now);
  const withDocumentSigner = withSigner(updatedChain, update.signer);
  const certifiedChain =
    update.certificates === undefined
      ? withDocumentSigner
      : await withCertificates(repositories, withDocumentSigner, update.certificates, { now, path: paths.certificates });
  if (update.usages?.includes('signing')) assertSigner(certifiedChain);
  if (isSelfSigned(certifiedChain.active)) assertSelfSignedUsage(certifiedChain.usages, paths.usages);
  if (update.usages !== undefined) assertUsagesFit(certifiedChain.active.certificates, certifiedChain.usages, paths.usages);
  return certifiedChain;
}

type SigningPorts = { readonly certificateAuthority: CertificateAuthority; readonly clock: Clock; readonly settings: ServiceSettings };

/**
 * Issues the certificate for mdocs that a key needs to sign credentials.
 * @returns undefined when it has one, or its certificates are external.
 */
export async function signerFor(
  ports: SigningPorts,
  chain: KeyChain,
  certificateSubject: SubjectOrganization,
): Promise<KeyLeaf | undefined> {
  const { root, active } = chain;
  if (root === undefined || active.documentSigner !== undefined) return undefined;
  const leaf = { ...leafOf(ports, chain, root, certificateSubject), notAfter: active.notAfter };
  const signer = await certifyDocumentSigner(ports.certificateAuthority, leaf);
  return { ...active, documentSigner: [signer] };
}

function settingsOf({ description: storedDescription, ...chain }: KeyChain, update: KeyChainUpdate): KeyChain {
  const description = update.description === undefined ? storedDescription : update.description;
  return {
    ...chain,
    ...defined({ description: description ?? undefined }),
    usages: update.usages === undefined ? chain.usages : [...new Set(update.usages)],
    rotationEnabled: update.rotationEnabled ?? chain.rotationEnabled,
    rotationIntervalDays: update.rotationIntervalDays ?? chain.rotationIntervalDays,
    certValidityDays: update.certValidityDays ?? chain.certValidityDays,
  };
}

/** Adds the certificate for mdocs, unless the leaf was renewed while it was created. */
function withSigner(chain: KeyChain, leaf: KeyLeaf | undefined): KeyChain {
  const isCurrent =
    leaf !== undefined && isSameHandle(leaf.key.handle, chain.active.key.handle) && leaf.certificates[0] === chain.active.certificates[0];
  return isCurrent ? { ...chain, active: leaf } : chain;
}

/** @throws Failure `conflict` when the leaf was renewed while the certificate for mdocs was created. */
function assertSigner({ root, active }: KeyChain): void {
  if (root === undefined || active.documentSigner !== undefined) return;
  throw new Failure('conflict', 'the key chain was changed or rotated concurrently; try again');
}

/** Equal certificates are not replaced, so that a repeated update changes nothing. */
async function withCertificates(
  repositories: TenantRepositories,
  chain: KeyChain,
  pem: NonNullable<KeyChainUpdate['certificates']>,
  { now, path }: { readonly now: Date; readonly path: string },
): Promise<KeyChain> {
  const { key, certificates } = chain.active;
  const parsed = parseCertificates(pem, { key: key.publicJwk, usages: chain.usages }, now, path);
  if (parsed.certificates.join() === certificates.join()) return chain;
  if (chain.root !== undefined) await assertNoAnchor(repositories, chain.id);
  return replaceActiveLeaf(chain, 'upload', { key, ...parsed }, now);
}
