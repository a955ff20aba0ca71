import type { KeyChain, KeyLeaf } from '../../domain/keys/key-chain.ts';
import type { KeyChainUpdate } from '../../domain/keys/key-chain-input.ts';
import { assertRotationFits, replaceLeaf } from '../../domain/keys/rotation.ts';
import { assertSelfSignedFits, isSelfSigned } from '../../domain/keys/self-signed.ts';
import { isSameHandle } from '../../domain/keys/signing-key.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { CertificateAuthority } from '../ports/certificate-authority.ts';
import type { Clock } from '../ports/clock.ts';
import type { TenantRepositories } from '../ports/repositories.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import { type CertificateHolder, certifyDocumentSigner, leafOf } from './certify-leaf.ts';
import { assertNoAnchor, assertNotLast, assertUnusedFor } from './key-references.ts';
import { assertUsagesFit, parseCertificates } from './parse-certificates.ts';

/** Members of the caller's document. */
export type ChangedMembers = { readonly certificates: string; readonly usages: string };

type Change = KeyChainUpdate & {
  /** The present leaf with its certificate for mdocs, where it gets one. */
  readonly signer: KeyLeaf | undefined;
};

/**
 * A key chain as it is to be from now on.
 * @throws Failure `conflict` when a usage or an internal CA would go that something needs, or the key chain was rotated
 *   meanwhile; `invalid_input` for certificates that are not for the key or its usages.
 */
export async function changedKeyChain(
  own: TenantRepositories,
  known: KeyChain,
  wanted: Change,
  now: Date,
  paths: ChangedMembers,
): Promise<KeyChain> {
  if (wanted.usages?.length === 0 && known.usages.length > 0) throw invalidInput(paths.usages, 'at least one is needed');
  const changed = { ...settingsOf(known, wanted), updatedAt: now };
  assertRotationFits(changed);
  const lost = known.usages.filter((usage) => !changed.usages.includes(usage));
  await assertUnusedFor(own, known.id, lost);
  await assertNotLast(own, known, lost, now);
  const signing = withSigner(changed, wanted.signer);
  const certified =
    wanted.certificates === undefined
      ? signing
      : await withCertificates(own, signing, wanted.certificates, { now, path: paths.certificates });
  if (wanted.usages?.includes('signing')) assertSigner(certified);
  if (isSelfSigned(certified.active)) assertSelfSignedFits(certified.usages, paths.usages);
  if (wanted.usages !== undefined) assertUsagesFit(certified.active.certificates, certified.usages, paths.usages);
  return certified;
}

type SigningPorts = { readonly certificateAuthority: CertificateAuthority; readonly clock: Clock; readonly settings: ServiceSettings };

/**
 * A key that signs credentials has a certificate for mdocs; one that is to sign them from now on needs it, too.
 * @returns undefined when it has one, or its certificates come from outside.
 */
export async function signerFor(ports: SigningPorts, chain: KeyChain, holder: CertificateHolder): Promise<KeyLeaf | undefined> {
  const { root, active } = chain;
  if (root === undefined || active.documentSigner !== undefined) return undefined;
  const leaf = { ...leafOf(ports, chain, root, holder), notAfter: active.notAfter };
  const signer = await certifyDocumentSigner(ports.certificateAuthority, leaf);
  return { ...active, documentSigner: [signer] };
}

function settingsOf({ description: before, ...chain }: KeyChain, wanted: KeyChainUpdate): KeyChain {
  const description = wanted.description === undefined ? before : wanted.description;
  return {
    ...chain,
    ...defined({ description: description ?? undefined }),
    usages: wanted.usages === undefined ? chain.usages : [...new Set(wanted.usages)],
    rotationEnabled: wanted.rotationEnabled ?? chain.rotationEnabled,
    rotationIntervalDays: wanted.rotationIntervalDays ?? chain.rotationIntervalDays,
    certValidityDays: wanted.certValidityDays ?? chain.certValidityDays,
  };
}

/** The leaf may have been renewed while the certificate was made. */
function withSigner(chain: KeyChain, leaf: KeyLeaf | undefined): KeyChain {
  const isPresent =
    leaf !== undefined && isSameHandle(leaf.key.handle, chain.active.key.handle) && leaf.certificates[0] === chain.active.certificates[0];
  return isPresent ? { ...chain, active: leaf } : chain;
}

/** @throws Failure `conflict` when the leaf was renewed while the certificate for mdocs was made. */
function assertSigner({ root, active }: KeyChain): void {
  if (root === undefined || active.documentSigner !== undefined) return;
  throw new Failure('conflict', 'the key chain was changed or rotated meanwhile; try again');
}

/** The certificates stay as they are when they are the same: a document that is sent again changes nothing. */
async function withCertificates(
  repositories: TenantRepositories,
  chain: KeyChain,
  pem: NonNullable<KeyChainUpdate['certificates']>,
  { now, path }: { readonly now: Date; readonly path: string },
): Promise<KeyChain> {
  const { key, certificates } = chain.active;
  const read = parseCertificates(pem, { key: key.publicJwk, usages: chain.usages }, now, path);
  if (read.certificates.join() === certificates.join()) return chain;
  if (chain.root !== undefined) await assertNoAnchor(repositories, chain.id);
  return replaceLeaf(chain, 'upload', { key, ...read }, now);
}
