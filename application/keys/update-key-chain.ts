import { leafValidity } from '../../domain/keys/certificate-profile.ts';
import { subjectNames } from '../../domain/keys/certificate-subject.ts';
import type { KeyChain, KeyLeaf } from '../../domain/keys/key-chain.ts';
import type { KeyChainUpdate } from '../../domain/keys/key-chain-input.ts';
import { assertRotationFits, replaceLeaf } from '../../domain/keys/rotation.ts';
import { assertSelfSignedFits, isSelfSigned } from '../../domain/keys/self-signed.ts';
import { isSameHandle } from '../../domain/keys/signing-key.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { TenantCaller } from '../caller.ts';
import type { CertificateAuthority } from '../ports/certificate-authority.ts';
import type { Clock } from '../ports/clock.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store, TenantRepositories } from '../ports/store.ts';
import { certifyDocumentSigner } from './certify-leaf.ts';
import { assertNoAnchor, assertNotLast, assertUnusedFor } from './key-references.ts';
import { assertUsagesFit, readCertificates } from './read-certificates.ts';

type Ports = {
  readonly store: Store;
  readonly clock: Clock;
  readonly certificateAuthority: CertificateAuthority;
  readonly settings: ServiceSettings;
};

/** Changes the description of a key chain, what it may sign, when it is rotated, and its certificates. */
export class UpdateKeyChain {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @param paths of the members of the caller's document that have the certificates and the usages.
   * @throws Failure `not_found`; `conflict` when a usage or an internal CA would go that something needs, or the key
   *   chain was rotated meanwhile; `invalid_input` for certificates that are not for the key or its usages.
   */
  async execute(
    caller: TenantCaller,
    id: string,
    wanted: KeyChainUpdate,
    paths = { certificates: 'certificates', usages: 'usages' },
  ): Promise<KeyChain> {
    const { store, clock } = this.#ports;
    const signer = wanted.usages?.includes('signing') ? await this.#documentSigner(caller, id) : undefined;
    return store.forTenant(
      caller.tenantId,
      async (repositories) => {
        const known = await repositories.keyChains.get(id);
        const now = clock.now();
        if (wanted.usages?.length === 0 && known.usages.length > 0) {
          throw invalidInput(paths.usages, 'at least one is needed');
        }
        const changed = { ...settingsOf(known, wanted), updatedAt: now };
        assertRotationFits(changed);
        await assertSpared(repositories, known, changed, now);
        const signing = withSigner(changed, signer);
        const certified =
          wanted.certificates === undefined
            ? signing
            : await withCertificates(repositories, signing, wanted.certificates, {
                now,
                path: paths.certificates,
              });
        if (wanted.usages?.includes('signing')) assertSigner(certified);
        if (isSelfSigned(certified.active)) assertSelfSignedFits(certified.usages, paths.usages);
        if (wanted.usages !== undefined) {
          assertUsagesFit(certified.active.certificates, certified.usages, paths.usages);
        }
        await repositories.keyChains.put(certified);
        return certified;
      },
      { by: caller, alone: true },
    );
  }

  /**
   * A key that signs credentials has a certificate for mdocs; one that is to sign them from now on needs it, too.
   * @returns undefined when it has one, or its certificates come from outside.
   */
  async #documentSigner({ tenantId }: TenantCaller, id: string): Promise<KeyLeaf | undefined> {
    const { store, clock, certificateAuthority, settings } = this.#ports;
    const chain = await store.forTenant(tenantId, ({ keyChains }) => keyChains.get(id));
    const { root, active, usages, certValidityDays } = chain;
    if (root === undefined || active.documentSigner !== undefined) return undefined;
    const signer = await certifyDocumentSigner(certificateAuthority, {
      tenantId,
      usages,
      subjectName: subjectNames(active.certificates[0] ?? '').commonName ?? tenantId,
      dnsName: new URL(settings.publicUrl).hostname,
      key: active.key,
      root,
      notBefore: leafValidity(clock.now(), certValidityDays, root.notAfter).notBefore,
      notAfter: active.notAfter,
    });
    return { ...active, documentSigner: [signer] };
  }
}

function settingsOf({ description: before, ...chain }: KeyChain, wanted: KeyChainUpdate): KeyChain {
  const description = wanted.description === undefined ? before : wanted.description;
  return {
    ...chain,
    ...(description !== undefined && description !== null && { description }),
    usages: wanted.usages === undefined ? chain.usages : [...new Set(wanted.usages)],
    rotationEnabled: wanted.rotationEnabled ?? chain.rotationEnabled,
    rotationIntervalDays: wanted.rotationIntervalDays ?? chain.rotationIntervalDays,
    certValidityDays: wanted.certValidityDays ?? chain.certValidityDays,
  };
}

async function assertSpared(
  repositories: TenantRepositories,
  known: KeyChain,
  { usages }: KeyChain,
  now: Date,
): Promise<void> {
  const lost = known.usages.filter((usage) => !usages.includes(usage));
  await assertUnusedFor(repositories, known.id, lost);
  await assertNotLast(repositories, known, lost, now);
}

/** The leaf may have been renewed while the certificate was made. */
function withSigner(chain: KeyChain, leaf: KeyLeaf | undefined): KeyChain {
  const isPresent =
    leaf !== undefined &&
    isSameHandle(leaf.key.handle, chain.active.key.handle) &&
    leaf.certificates[0] === chain.active.certificates[0];
  return isPresent ? { ...chain, active: leaf } : chain;
}

/** @throws Failure `conflict` when the leaf was renewed while the certificate for mdocs was made. */
function assertSigner({ root, active }: KeyChain): void {
  if (root === undefined || active.documentSigner !== undefined) return;
  throw new Failure('conflict', 'the key chain was changed or rotated meanwhile; try again');
}

/** The certificates stay as they are when they are the same: whoever sends a document again changes nothing. */
async function withCertificates(
  repositories: TenantRepositories,
  chain: KeyChain,
  pem: NonNullable<KeyChainUpdate['certificates']>,
  { now, path }: { readonly now: Date; readonly path: string },
): Promise<KeyChain> {
  const { key, certificates } = chain.active;
  const read = readCertificates(pem, { key: key.publicJwk, usages: chain.usages }, now, path);
  if (read.certificates.join() === certificates.join()) return chain;
  if (chain.root !== undefined) await assertNoAnchor(repositories, chain.id);
  return replaceLeaf(chain, { active: { key, ...read } }, now);
}
